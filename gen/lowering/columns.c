/* SPDX-License-Identifier: Apache-2.0 */
/* Column gather: columns that most rows of a strip see but that stand alone (globals, the summary
   columns of fixed masks) are brought together, 32 at a time, and then cost what a tile costs and
   the bringing, where tiles would visit 32 columns for one and lines each entry by itself. */
#include "gen/lowering/fragments.h"
#include "gen/lowering/lowering.h"
#include "masks/base/memory.h"
#include <string.h>

extern const struct lowering lowering_columns;

/* Gathering must save this share of what the tile would cost otherwise. */
#define LEAST_GAIN 0.1

/* One column of a whole group. */
static double column_price(const struct strip *s, const struct price *p)
{
    return p->gather + s->rows * p->partial;
}

/* Scores are always made 32 wide, sums as deep as there are columns. */
static double group_entries(uint32_t rows, uint32_t count)
{
    return rows * (ABI_TILE_COLS + count) / 2.0;
}

double columns_group_price(const struct price *p, uint32_t rows, uint32_t count, bool full)
{
    return count * p->gather + group_entries(rows, count) * (full ? p->full : p->partial);
}

/* The same for the words of a strip's group. */
static double group_price(const struct strip *s, const struct price *p, const u32 *word,
                          uint32_t count, bool full)
{
    if (!s->fragments)
        return columns_group_price(p, s->rows, count, full);
    return count * p->gather + fragment_entries(word, s->rows) * (full ? p->full : p->partial);
}

static void count_columns(const u32 *word, uint32_t rows, uint32_t count[ABI_TILE_COLS])
{
    memset(count, 0, ABI_TILE_COLS * sizeof *count);
    for (uint32_t r = 0; r < rows; r++)
        for (u32 left = word[r]; left; left &= left - 1)
            count[__builtin_ctz(left)]++;
}

/* What walking costs without the columns of `less`; a line begins where nothing is above. */
static double walk_price(const struct price *p, const u32 *word, uint32_t rows, u32 less)
{
    uint32_t cells = 0, lines = 0;
    u32 last = 0, any = 0;
    for (uint32_t r = 0; r < rows; r++) {
        u32 now = word[r] & ~less;
        cells += (uint32_t)__builtin_popcount(now);
        lines += (uint32_t)__builtin_popcount(now & ~(last | last << 1));
        last = now;
        any |= now;
    }
    return price_lines(p, rows, cells, lines, __builtin_popcount(any));
}

/* Where a tile's price is that of its fragments: all its columns, so that the tile is gone, or those of
   fragments that are dearer than their columns alone. A gathered column is taken for an eighth of a
   fragment in each band of rows. */
static u32 choose_by_fragment(const struct strip *s, const struct price *p, const u32 *word)
{
    const double column = column_price(s, p);
    u32 any = 0, chosen = 0;
    for (uint32_t r = 0; r < s->rows; r++)
        any |= word[r];
    if (__builtin_popcount(any) * column < (1 - LEAST_GAIN) * tile_price(s, p, word))
        return any;
    for (u32 eight = 0xff; eight; eight <<= FRAGMENT_COLS) {
        u32 alone[ABI_MAX_STRIP];
        for (uint32_t r = 0; r < s->rows; r++)
            alone[r] = word[r] & eight;
        double fragments = fragment_entries(alone, s->rows) * p->partial;
        if (__builtin_popcount(any & eight) * column < (1 - LEAST_GAIN) * fragments)
            chosen |= any & eight;
    }
    return chosen;
}

/* The columns of a tile that are worth gathering. */
static u32 choose(const struct strip *s, const struct price *p, const u32 *word)
{
    if (s->fragments)
        return choose_by_fragment(s, p, word);
    uint32_t count[ABI_TILE_COLS];
    double tile = 32.0 * s->rows * p->partial, column = column_price(s, p);
    double all = walk_price(p, word, s->rows, 0), best = all < tile ? all : tile;
    u32 heavy = 0;
    count_columns(word, s->rows, count);
    for (uint32_t k = 0; k < ABI_TILE_COLS; k++)
        if (count[k] && price_lines(p, s->rows, count[k], 1, 1) > column)
            heavy |= (u32)1 << k;
    double ours = __builtin_popcount(heavy) * column;
    if (!heavy || ours >= (1 - LEAST_GAIN) * best)
        return 0;
    return ours + walk_price(p, word, s->rows, heavy) < (1 - LEAST_GAIN) * best ? heavy : 0;
}

static bool applies(const struct strip *s, const struct price *p)
{
    if (p->gather <= 0)
        return false;
    for (uint32_t k = 0; k < s->n_touched; k++)
        if (choose(s, p, strip_tile(s, s->bits, s->touched[k])))
            return true;
    return false;
}

static double cost(struct strip *s, const struct price *p)
{
    uint64_t columns = (uint64_t)ABI_TILE_COLS * strip_solid_tiles(s);
    for (uint32_t k = 0; k < s->n_touched; k++) {
        const u32 *word = strip_tile(s, s->bits, s->touched[k]);
        u32 any = 0;
        for (uint32_t r = 0; r < s->rows; r++)
            any |= word[r];
        columns += (uint32_t)__builtin_popcount(any);
    }
    uint64_t whole = columns / ABI_TILE_COLS, rest = columns % ABI_TILE_COLS;
    return strip_price(s, p) +
           (double)whole * columns_group_price(p, s->rows, ABI_TILE_COLS, false) +
           (rest ? columns_group_price(p, s->rows, (uint32_t)rest, false) : 0);
}

/* The group that is being filled. */
struct group {
    u32 column[ABI_TILE_COLS];
    u32 word[ABI_MAX_STRIP]; /* bit k: the row sees column[k] */
    uint32_t count;
};

static bool is_full(const struct strip *s, const struct group *g)
{
    u32 all = ~(u32)0 >> (ABI_TILE_COLS - g->count);
    for (uint32_t r = 0; r < s->rows; r++)
        if (strip_owns(s, r) && g->word[r] != all)
            return false;
    return true;
}

static void close_group(const struct strip *s, const struct price *p, struct draft *d,
                        struct group *g)
{
    if (!g->count)
        return;
    bool full = is_full(s, g);
    struct abi_gather gather = {(u32)d->n_columns, g->count, 0};
    if (!full) {
        gather.pattern = (u32)(d->n_words / s->strip_rows) + 1;
        memcpy(draft_pattern(d, s->strip_rows), g->word, s->strip_rows * sizeof *g->word);
    }
    for (uint32_t k = 0; k < g->count; k++)
        *MEMORY_PUSH(d->columns, d->n_columns, d->columns_room) = g->column[k];
    *MEMORY_PUSH(d->gathers, d->n_gathers, d->gathers_room) = gather;
    d->cost += group_price(s, p, g->word, g->count, full);
    memset(g, 0, sizeof *g);
}

/* Moves one column of a tile to the group. */
static void take_column(const struct strip *s, u32 *word, u32 col0, uint32_t bit,
                        struct group *g)
{
    for (uint32_t r = 0; r < s->rows; r++) {
        g->word[r] |= (word[r] >> bit & 1) << g->count;
        word[r] &= ~((u32)1 << bit);
    }
    g->column[g->count++] = col0 + bit;
}

static void build(struct strip *s, const struct price *p, struct draft *d)
{
    uint64_t first = d->n_gathers, columns = d->n_columns;
    struct group g = {.count = 0};
    for (uint32_t k = 0; k < s->n_touched; k++) {
        u32 *word = strip_tile(s, s->open, s->touched[k]);
        for (u32 left = choose(s, p, word); left; left &= left - 1) {
            take_column(s, word, s->touched[k] * ABI_TILE_COLS, (uint32_t)__builtin_ctz(left),
                        &g);
            if (g.count == ABI_TILE_COLS)
                close_group(s, p, d, &g);
        }
    }
    close_group(s, p, d, &g);
    if (d->n_gathers > first)
        draft_piece(d, ABI_COLUMNS, first, d->n_gathers - first, d->n_columns - columns);
}

/* ---- what was decoded ---- */

static u32 gather_word(const struct plan_pass *t, uint32_t strip_rows,
                       const struct abi_item *item, struct abi_gather g, uint32_t r)
{
    if (g.pattern)
        return t->patterns[(size_t)(g.pattern - 1) * strip_rows + r];
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

static bool decode(const struct plan_pass *t, uint32_t strip_rows, const struct abi_item *item,
                   const struct abi_piece *piece, const struct visitor *v)
{
    if (piece->first > t->n_gathers || piece->count > t->n_gathers - piece->first)
        return false;
    for (uint32_t k = 0; k < piece->count; k++) {
        struct abi_gather g = t->gathers[piece->first + k];
        if (!is_sound(t, g))
            return false;
        for (uint32_t r = 0; r < strip_rows; r++)
            for (u32 left = gather_word(t, strip_rows, item, g, r); left; left &= left - 1) {
                uint32_t bit = (uint32_t)__builtin_ctz(left);
                u32 column = bit < g.count ? t->columns[g.first + bit] : UINT32_MAX;
                if (column == UINT32_MAX || !v->range(v->context, r, column, column + 1))
                    return false;
            }
    }
    return true;
}

static uint64_t columns(const struct plan_pass *t, const struct abi_piece *piece)
{
    uint64_t sum = 0;
    for (u32 k = piece->first; k < piece->first + piece->count; k++)
        sum += t->gathers[k].count;
    return sum;
}

static uint64_t executed(const struct plan_pass *t, const struct abi_item *item,
                         const struct abi_piece *piece, uint32_t n)
{
    (void)n;
    uint64_t cells = 0;
    if (!t->fragments)
        return columns(t, piece) * item_owned_rows(item);
    for (u32 k = piece->first; k < piece->first + piece->count; k++) {
        const struct abi_gather *g = &t->gathers[k];
        cells += fragment_cells(pass_pattern(t, g->pattern), item->rows, g->count);
    }
    return cells;
}

uint64_t columns_active(const struct plan_pass *t, uint32_t strip_rows,
                        const struct abi_item *item, const struct abi_piece *piece)
{
    uint64_t sum = 0;
    for (u32 k = piece->first; k < piece->first + piece->count; k++)
        for (uint32_t r = 0; r < item->rows; r++)
            sum += (uint32_t)__builtin_popcount(
                gather_word(t, strip_rows, item, t->gathers[k], r));
    return sum;
}

static void count(const struct plan_pass *t, const struct abi_item *item,
                  const struct abi_piece *piece, struct effort *ret)
{
    for (u32 k = piece->first; k < piece->first + piece->count; k++) {
        const struct abi_gather *g = &t->gathers[k];
        const u32 *word = pass_pattern(t, g->pattern);
        double entries = group_entries(item->rows, g->count);
        if (t->fragments)
            entries = word ? fragment_entries(word, item->rows)
                           : fragment_entries(NULL, item->rows) *
                                 ((g->count + FRAGMENT_COLS - 1) / FRAGMENT_COLS) / 4;
        ret->count[UNIT_GATHER] += g->count;
        ret->count[word ? UNIT_PARTIAL : UNIT_FULL] += entries;
    }
}

static void print(const struct plan_pass *t, uint32_t strip_rows, const struct abi_item *item,
                  const struct abi_piece *piece, struct text *out)
{
    uint64_t count = columns(t, piece);
    count_print(out, piece->count, "group");
    text_add(out, " of %llu scattered column%s, %llu entries:", (unsigned long long)count,
             count == 1 ? "" : "s",
             (unsigned long long)columns_active(t, strip_rows, item, piece));
    u32 first = t->gathers[piece->first].first; /* a piece's lists stand end to end */
    for (uint32_t k = 0; k < count && k < 12; k++)
        text_add(out, " %u", t->columns[first + k]);
    text_add(out, count > 12 ? " ...\n" : "\n");
}

const struct lowering lowering_columns = {
    .name = "columns",
    .part = "column group",
    .kind = ABI_COLUMNS,
    .table = TABLE_GATHERS,
    .optional = true,
    .applies = applies,
    .cost = cost,
    .build = build,
    .decode = decode,
    .columns = columns,
    .count = count,
    .executed = executed,
    .print = print,
};
