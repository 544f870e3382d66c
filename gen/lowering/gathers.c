/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of gathered columns as they stand in a plan's tables: decoded, counted, printed. */
#include "gen/lowering/gathers.h"
#include "gen/lowering/fragments.h"
#include <string.h>

/* Scores are always made 32 wide, sums as deep as there are columns. */
double gathers_entries(uint32_t rows, uint32_t count)
{
    return rows * (ABI_TILE_COLS + count) / 2.0;
}

double gathered_column_price(const struct price *p, uint32_t rows)
{
    return p->gather + gathers_entries(rows, ABI_TILE_COLS) / ABI_TILE_COLS * p->partial;
}

static u32 gather_word(const struct plan_pass *t, uint32_t block_rows,
                       const struct abi_item *item, struct abi_gather g, uint32_t r)
{
    if (g.pattern)
        return t->patterns[(size_t)(g.pattern - 1) * block_rows + r];
    return r < item->rows && item_owns(item, r) ? ~(u32)0 >> (ABI_TILE_COLS - g.count) : 0;
}

static bool is_sound(const struct plan_pass *t, struct abi_gather g)
{
    if (!g.count || g.count > ABI_TILE_COLS || g.pattern > t->n_patterns ||
        g.first > t->n_columns || g.count > t->n_columns - g.first)
        return false;
    for (uint32_t k = 1; k < g.count; k++)
        if (t->columns[g.first + k] <= t->columns[g.first + k - 1])
            return false;
    return true;
}

bool gathers_decode(const struct plan_pass *t, uint32_t block_rows, const struct abi_item *item,
                    const struct abi_piece *piece, const struct visitor *v)
{
    if (piece->first > t->n_gathers || piece->count > t->n_gathers - piece->first)
        return false;
    for (uint32_t k = 0; k < piece->count; k++) {
        struct abi_gather g = t->gathers[piece->first + k];
        if (!is_sound(t, g))
            return false;
        for (uint32_t r = 0; r < block_rows; r++)
            for (u32 left = gather_word(t, block_rows, item, g, r); left; left &= left - 1) {
                uint32_t bit = (uint32_t)__builtin_ctz(left);
                u32 column = bit < g.count ? t->columns[g.first + bit] : UINT32_MAX;
                if (column == UINT32_MAX || !v->range(v->context, r, column, column + 1))
                    return false;
            }
    }
    return true;
}

uint64_t gathers_columns(const struct plan_pass *t, const struct abi_piece *piece)
{
    uint64_t sum = 0;
    for (u32 k = piece->first; k < piece->first + piece->count; k++)
        sum += t->gathers[k].count;
    return sum;
}

uint64_t gathers_executed(const struct plan_pass *t, const struct abi_item *item,
                          const struct abi_piece *piece, uint32_t n)
{
    (void)n;
    uint64_t cells = 0;
    if (!t->fragments)
        return gathers_columns(t, piece) * item_owned_rows(item);
    for (u32 k = piece->first; k < piece->first + piece->count; k++) {
        const struct abi_gather *g = &t->gathers[k];
        cells += fragment_cells(pass_pattern(t, g->pattern), item->rows, g->count);
    }
    return cells;
}

uint64_t gathers_active(const struct plan_pass *t, uint32_t block_rows,
                        const struct abi_item *item, const struct abi_piece *piece)
{
    uint64_t sum = 0;
    for (u32 k = piece->first; k < piece->first + piece->count; k++)
        for (uint32_t r = 0; r < item->rows; r++)
            sum += (uint32_t)__builtin_popcount(
                gather_word(t, block_rows, item, t->gathers[k], r));
    return sum;
}

/* True if the item before has already loaded these columns. */
static bool gather_is_kept(const struct plan_pass *t, const struct abi_item *item,
                           const struct abi_piece *piece, const struct abi_gather *g)
{
    if (item == t->items || piece->count > t->gathers_kept)
        return false;
    for (u32 k = item[-1].piece; k < item[-1].piece + item[-1].pieces; k++) {
        const struct abi_piece *x = &t->pieces[k];
        for (u32 i = 0; x->kind == ABI_COLUMNS && i < x->count; i++) {
            const struct abi_gather *o = &t->gathers[x->first + i];
            if (o->count == g->count && !memcmp(t->columns + o->first, t->columns + g->first,
                                                g->count * sizeof *t->columns))
                return true;
        }
    }
    return false;
}

void gathers_count(const struct plan_pass *t, const struct abi_item *item,
                   const struct abi_piece *piece, struct effort *ret)
{
    for (u32 k = piece->first; k < piece->first + piece->count; k++) {
        const struct abi_gather *g = &t->gathers[k];
        const u32 *word = pass_pattern(t, g->pattern);
        double entries = gathers_entries(item->rows, g->count);
        if (t->fragments)
            entries = word ? fragment_entries(word, item->rows)
                           : fragment_entries(NULL, item->rows) *
                                 ((g->count + FRAGMENT_COLS - 1) / FRAGMENT_COLS) / 4;
        ret->count[UNIT_GATHER] += gather_is_kept(t, item, piece, g) ? 0 : g->count;
        ret->count[word ? UNIT_PARTIAL : UNIT_FULL] += entries;
    }
}

void gathers_print(const struct plan_pass *t, uint32_t block_rows, const struct abi_item *item,
                   const struct abi_piece *piece, struct text *out)
{
    uint64_t count = gathers_columns(t, piece);
    count_print(out, piece->count, "group");
    text_add(out, " of %llu scattered column%s, %llu entries:", (unsigned long long)count,
             count == 1 ? "" : "s",
             (unsigned long long)gathers_active(t, block_rows, item, piece));
    u32 first = t->gathers[piece->first].first; /* a piece's lists stand end to end */
    for (uint32_t k = 0; k < count && k < 12; k++)
        text_add(out, " %u", t->columns[first + k]);
    text_add(out, count > 12 ? " ...\n" : "\n");
}
