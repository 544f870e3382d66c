/* SPDX-License-Identifier: Apache-2.0 */
/* The next group of a walk, by the kind of its piece: what the plan's tables say becomes slots and bits. */
#ifndef MASKC_CUDA_SIMT_PIECES_H
#define MASKC_CUDA_SIMT_PIECES_H
#include "cuda/simt/walk.h"

/* ABI_TILES: 32 columns under a pattern, or full. */
DEVICE u32 next_tile(struct walk *w, const struct abi_piece *p, struct group *g)
{
    while (w->element < p->count) {
        const struct abi_tile *t = w->plan->tiles + p->first + w->element++;
        if (t->col0 >= w->job->length)
            continue;
        g->tile = 1;
        g->column = (i32)t->col0;
        group_slots(g, w, 0, smaller(32, w->job->length - t->col0));
        g->bits = bits_between(0, g->end);
        if (t->pattern)
            g->bits &= w->plan->patterns[(u64)(t->pattern - 1) * BLOCK_ROWS + quad()];
        return 1;
    }
    return 0;
}

/* ABI_BLOCKS: ranges of columns that every row sees, taken in groups aligned to 32 columns, so
   that dropout needs few calls. */
DEVICE u32 next_block(struct walk *w, const struct abi_piece *p, struct group *g)
{
    for (; w->element < p->count; w->element++, w->column = 0) {
        struct abi_range r = w->plan->ranges[p->first + w->element];
        u32 end = smaller(r.end, w->job->length);
        u32 at = w->column ? w->column : r.begin;
        if (at >= end)
            continue;
        g->tile = 1;
        g->column = (i32)(at & ~31u);
        w->column = (at & ~31u) + 32;
        group_slots(g, w, at & 31u, smaller(32, end - (at & ~31u)));
        g->bits = bits_between(g->begin, g->end);
        return 1;
    }
    return 0;
}

/* ABI_COLUMNS: up to 32 columns from anywhere, as a tile that is loaded through their list. */
DEVICE u32 next_columns(struct walk *w, const struct abi_piece *p, struct group *g)
{
    while (w->element < p->count) {
        const struct abi_gather *t = w->plan->gathers + p->first + w->element++;
        u32 count = t->count;
        g->columns = w->plan->columns + t->first;
        while (count && g->columns[count - 1] >= w->job->length)
            count--;
        if (!count)
            continue;
        g->tile = 1;
        group_slots(g, w, 0, count);
        g->bits = bits_between(0, count);
        if (t->pattern)
            g->bits &= w->plan->patterns[(u64)(t->pattern - 1) * BLOCK_ROWS + quad()];
        return 1;
    }
    return 0;
}

/* ABI_DIAGONAL: up to 32 lines at a time, one column of its own for each row on each. */
DEVICE u32 next_lines(struct walk *w, const struct abi_piece *p, struct group *g)
{
    if (w->element >= p->count)
        return 0;
    u32 count = smaller(32, p->count - w->element), r = quad();
    g->tile = 0;
    g->line = w->plan->lines + p->first + w->element;
    w->element += count;
    group_slots(g, w, 0, count);
    g->bits = 0;
    NO_UNROLL
    for (u32 s = 0; s < count; s++) {
        u32 here = r >= g->line[s].row_begin && r < g->line[s].row_end;
        if (here && group_column(g, s) < w->job->length)
            g->bits |= 1u << s;
    }
    return 1;
}

/* ABI_ROWS: the columns of one row, spread over the block: quad q takes columns q, q + 32, ...
   of a range, and what the quads found is put together at the end (row_sum, store_shared). */
enum { ROWS_STEP = 32 * BLOCK_ROWS }; /* columns of a group */

DEVICE u32 next_row_part(struct walk *w, const struct abi_piece *p, struct group *g)
{
    for (; w->element < p->count; w->element++, w->column = 0) {
        struct abi_range r = w->plan->ranges[p->first + w->element];
        u32 end = smaller(r.end, w->job->length);
        u32 at = w->column ? w->column : r.begin;
        if (at >= end)
            continue;
        g->tile = 0;
        g->line = 0;
        g->column = (i32)at;
        w->column = at + ROWS_STEP;
        group_slots(g, w, 0, smaller(32, (end - at + BLOCK_ROWS - 1) / BLOCK_ROWS));
        g->bits = 0;
        NO_UNROLL
        for (u32 s = 0; s < g->end; s++)
            g->bits |= (u32)(group_column(g, s) < end) << s;
        return 1;
    }
    return 0;
}

/* The next group of a piece of any kind; 0 at its end. */
DEVICE u32 next_of_piece(struct walk *w, const struct abi_piece *p, struct group *g)
{
    switch (p->kind) {
    case ABI_BLOCKS:
        return next_block(w, p, g);
    case ABI_TILES:
        return next_tile(w, p, g);
    case ABI_DIAGONAL:
        return next_lines(w, p, g);
    case ABI_COLUMNS:
        return next_columns(w, p, g);
    default:
        return next_row_part(w, p, g);
    }
}

DEVICE u32 walk_next(struct walk *w, struct group *g)
{
    while (w->piece < w->pieces_end) {
        g->line = 0;
        g->columns = 0;
        g->column = 0;
        if (next_of_piece(w, w->plan->pieces + w->piece, g)) {
            if (!w->job->active)
                g->bits = 0;
            return 1;
        }
        w->piece++;
        w->element = w->column = 0;
    }
    return 0;
}

#endif
