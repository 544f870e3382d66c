/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gen/plain_plan.h"
#include "masks/base/memory.h"
#include <stdlib.h>

struct plain {
    const struct plan *plan;
    const struct plan_pass *pass;
    uint8_t *visits;          /* [n][n], in the direction of the pass */
    uint8_t *owned;           /* [n] by items that are not partial */
    uint8_t *begun, *resumed; /* [n] */
    bool ok;
};

static void visit(struct plain *d, const struct abi_item *item, u32 r, i64 col)
{
    u32 n = d->plan->n;
    bool own = r < item->rows && item->own[r / 32] >> (r % 32) & 1;
    u64 row = item->row0 + (u64)item->step * r;
    if (!own || col < 0 || col >= n || row >= n)
        d->ok = false;
    else
        d->visits[row * n + (size_t)col]++;
}

static void visit_tile(struct plain *d, const struct abi_item *item,
                       const struct abi_tile *tile)
{
    u32 rows = d->plan->block_rows;
    if (tile->pattern > d->pass->n_patterns || tile->col0 % 32) {
        d->ok = false;
        return;
    }
    for (u32 r = 0; r < rows; r++) {
        bool own = r < item->rows && item->own[r / 32] >> (r % 32) & 1;
        u32 word = tile->pattern ? d->pass->patterns[(size_t)(tile->pattern - 1) * rows + r]
                   : own         ? ~(u32)0
                                 : 0;
        for (u32 c = 0; c < 32; c++)
            if (word >> c & 1)
                visit(d, item, r, (i64)tile->col0 + c);
    }
}

static void visit_range(struct plain *d, const struct abi_item *item, struct abi_range range,
                        bool all)
{
    if (range.begin >= range.end || range.end > d->plan->n) {
        d->ok = false;
        return;
    }
    for (u32 r = 0; r < item->rows; r++)
        for (u32 c = range.begin; c < range.end; c++)
            if (all || item->own[r / 32] >> (r % 32) & 1)
                visit(d, item, r, c);
}

static void visit_line(struct plain *d, const struct abi_item *item,
                       const struct abi_line *line)
{
    if (line->step > 1 || line->row_begin >= line->row_end || line->row_end > item->rows) {
        d->ok = false;
        return;
    }
    for (u32 r = line->row_begin; r < line->row_end; r++)
        visit(d, item, r, (i64)line->col0 + (i64)line->step * r);
}

/* Whether row r of the item visits column k of the gather: by its pattern, else all its own rows and columns. */
static bool gathers(const struct plain *d, const struct abi_item *item,
                    const struct abi_gather *g, u32 r, u32 k)
{
    if (g->pattern)
        return d->pass->patterns[(u64)(g->pattern - 1) * d->plan->block_rows + r] >> k & 1;
    return k < g->count && r < item->rows && item->own[r / 32] >> (r % 32) & 1;
}

static u32 visit_gather(struct plain *d, const struct abi_item *item,
                        const struct abi_gather *g)
{
    if (g->count < 1 || g->count > 32 || (u64)g->first + g->count > d->pass->n_columns ||
        g->pattern > d->pass->n_patterns) {
        d->ok = false;
        return 0;
    }
    for (u32 r = 0; r < d->plan->block_rows; r++)
        for (u32 k = 0; k < 32; k++) {
            bool on = gathers(d, item, g, r, k);
            if (on && k < g->count)
                visit(d, item, r, d->pass->columns[g->first + k]);
            d->ok &= !on || k < g->count;
        }
    return g->count;
}

static u32 visit_piece(struct plain *d, const struct abi_item *item,
                       const struct abi_piece *piece)
{
    const struct plan_pass *t = d->pass;
    u64 capacity = piece->kind == ABI_TILES      ? t->n_tiles
                   : piece->kind == ABI_DIAGONAL ? t->n_lines
                   : piece->kind == ABI_COLUMNS  ? t->n_gathers
                   : piece->kind == ABI_RESIDUE  ? t->n_gathers
                                                 : t->n_ranges;
    u32 cols = 0;
    d->ok &= piece->kind < ABI_KINDS && (u64)piece->first + piece->count <= capacity;
    for (u32 k = piece->first; d->ok && k < piece->first + piece->count; k++) {
        if (piece->kind == ABI_TILES)
            visit_tile(d, item, &t->tiles[k]), cols += 32;
        else if (piece->kind == ABI_DIAGONAL)
            visit_line(d, item, &t->lines[k]), cols++;
        else if (piece->kind == ABI_COLUMNS || piece->kind == ABI_RESIDUE)
            cols += visit_gather(d, item, &t->gathers[k]);
        else
            visit_range(d, item, t->ranges[k], piece->kind == ABI_ROWS),
                cols += t->ranges[k].end - t->ranges[k].begin;
    }
    d->ok &= item->step > 1 ? piece->kind == ABI_RESIDUE ||
                                  (piece->kind == ABI_BLOCKS &&
                                   d->plan->target->kind == TARGET_CPU && !item->split)
                            : piece->kind != ABI_RESIDUE;
    d->ok &= item->step > 1 || (piece->kind == ABI_ROWS) == (item->rows == 1);
    return cols;
}

static void visit_item(struct plain *d, const struct abi_item *item)
{
    u32 n = d->plan->n, cols = 0;
    if (item->rows < 1 || item->rows > d->plan->block_rows || item->step < 1 ||
        item->row0 + (u64)item->step * (item->rows - 1) >= n ||
        (u64)item->piece + item->pieces > d->pass->n_pieces) {
        d->ok = false;
        return;
    }
    d->ok &= item->rows == 1 || item->step > 1 || item->row0 % d->plan->block_rows == 0;
    for (u32 r = 0; r < ABI_MAX_BLOCK_ROWS; r++) {
        if (!(item->own[r / 32] >> (r % 32) & 1))
            continue;
        u32 row = item->row0 + item->step * r;
        if (r >= item->rows) {
            d->ok = false;
            continue;
        }
        (item->split ? d->begun : d->owned)[row]++;
        d->resumed[row] += item->merge[r / 32] >> (r % 32) & 1;
    }
    for (u32 k = 0; d->ok && k < item->pieces; k++) {
        const struct abi_piece *piece = &d->pass->pieces[item->piece + k];
        u32 piece_cols = visit_piece(d, item, piece);
        d->ok &= piece_cols == piece->cols;
        cols += piece_cols;
    }
    d->ok &= cols == item->cols && item->cost > 0;
}

bool plain_equal(const struct plan *p, const struct plan_pass *t, const struct mask *m,
                 bool transposed)
{
    struct plain d = {.plan = p, .pass = t, .ok = true};
    for (u32 which = 0; which < p->n_masks && d.ok; which++) {
        d.visits = memory_new((size_t)p->n * p->n, 1);
        d.owned = memory_new(p->n, 1);
        d.begun = memory_new(p->n, 1);
        d.resumed = memory_new(p->n, 1);
        for (u32 k = t->item_first[which]; k < t->item_first[which + 1]; k++)
            visit_item(&d, &t->items[k]);
        for (u32 i = 0; i < p->n; i++) {
            d.ok &= d.owned[i] == 1 && d.begun[i] == d.resumed[i] && d.begun[i] < 2;
            for (u32 j = 0; j < p->n; j++)
                d.ok &= d.visits[(size_t)i * p->n + j] ==
                        (transposed ? pattern_test(m->pattern[which], j, i)
                                    : pattern_test(m->pattern[which], i, j));
        }
        free(d.visits);
        free(d.owned);
        free(d.begun);
        free(d.resumed);
    }
    return d.ok;
}
