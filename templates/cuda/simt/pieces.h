/* SPDX-License-Identifier: Apache-2.0 */
/* The next column tile of a walk, by the kind of its piece: the plan's tables become slots and bits. A new kind
   of piece is one more function here. */
#ifndef MASKC_CUDA_SIMT_PIECES_H
#define MASKC_CUDA_SIMT_PIECES_H
#include "cuda/simt/walk.h"

/* ABI_TILES: 32 columns under a pattern, or full. */
DEVICE u32 next_tile(struct walk *w, const struct abi_piece *p, struct column_tile *ct)
{
    while (w->element < p->count) {
        const struct abi_tile *t = w->plan->tiles + p->first + w->element++;
        if (t->col0 >= column_length(w->work))
            continue;
        ct->is_tile = 1;
        ct->column = (i32)t->col0;
        column_tile_slots(ct, w, 0, smaller(32, column_length(w->work) - t->col0));
        ct->bits = bits_between(0, ct->end);
        if (t->pattern)
            ct->bits &= w->plan->patterns[(u64)(t->pattern - 1) * BLOCK_ROWS + quad()];
        return 1;
    }
    return 0;
}

/* ABI_BLOCKS: ranges of columns that every row sees. Column tiles are aligned to 32 columns, so that dropout
   needs few calls. */
DEVICE u32 next_block(struct walk *w, const struct abi_piece *p, struct column_tile *ct)
{
    for (; w->element < p->count; w->element++, w->column = 0) {
        struct abi_range r = w->plan->ranges[p->first + w->element];
        u32 end = smaller(r.end, column_length(w->work));
        u32 at = w->column ? w->column : r.begin;
        if (at >= end)
            continue;
        ct->is_tile = 1;
        ct->column = (i32)(at & ~31u);
        w->column = (at & ~31u) + 32;
        column_tile_slots(ct, w, at & 31u, smaller(32, end - (at & ~31u)));
        ct->bits = bits_between(ct->begin, ct->end);
        return 1;
    }
    return 0;
}

/* ABI_COLUMNS: up to 32 gathered columns, loaded through their list. */
DEVICE u32 next_columns(struct walk *w, const struct abi_piece *p, struct column_tile *ct)
{
    while (w->element < p->count) {
        const struct abi_gather *t = w->plan->gathers + p->first + w->element++;
        u32 count = t->count;
        ct->columns = w->plan->columns + t->first;
        while (count && ct->columns[count - 1] >= column_length(w->work))
            count--;
        if (!count)
            continue;
        ct->is_tile = 1;
        column_tile_slots(ct, w, 0, count);
        ct->bits = bits_between(0, count);
        if (t->pattern)
            ct->bits &= w->plan->patterns[(u64)(t->pattern - 1) * BLOCK_ROWS + quad()];
        return 1;
    }
    return 0;
}

/* ABI_DIAGONAL: up to 32 lines at a time; on each a row has one column of its own. */
DEVICE u32 next_lines(struct walk *w, const struct abi_piece *p, struct column_tile *ct)
{
    if (w->element >= p->count)
        return 0;
    u32 count = smaller(32, p->count - w->element), r = quad();
    ct->is_tile = 0;
    ct->line = w->plan->lines + p->first + w->element;
    w->element += count;
    column_tile_slots(ct, w, 0, count);
    ct->bits = 0;
    NO_UNROLL
    for (u32 s = 0; s < count; s++) {
        u32 here = r >= ct->line[s].row_begin && r < ct->line[s].row_end;
        if (here && slot_column(ct, s) < column_length(w->work))
            ct->bits |= 1u << s;
    }
    return 1;
}

/* ABI_ROWS: the columns of one global row, spread over the block: quad q takes columns q, q + 32, ... of a
   range. What the quads found is reduced at the end (reduce_row_sum, store_shared). */
enum { ROWS_STEP = 32 * BLOCK_ROWS }; /* columns of a column tile */

DEVICE u32 next_row_part(struct walk *w, const struct abi_piece *p, struct column_tile *ct)
{
    for (; w->element < p->count; w->element++, w->column = 0) {
        struct abi_range r = w->plan->ranges[p->first + w->element];
        u32 end = smaller(r.end, column_length(w->work));
        u32 at = w->column ? w->column : r.begin;
        if (at >= end)
            continue;
        ct->is_tile = 0;
        ct->line = 0;
        ct->column = (i32)at;
        w->column = at + ROWS_STEP;
        column_tile_slots(ct, w, 0, smaller(32, (end - at + BLOCK_ROWS - 1) / BLOCK_ROWS));
        ct->bits = 0;
        NO_UNROLL
        for (u32 s = 0; s < ct->end; s++)
            ct->bits |= (u32)(slot_column(ct, s) < end) << s;
        return 1;
    }
    return 0;
}

/* The next column tile of a piece of any kind; 0 at its end. */
DEVICE u32 next_of_piece(struct walk *w, const struct abi_piece *p, struct column_tile *ct)
{
    switch (p->kind) {
    case ABI_BLOCKS:
        return next_block(w, p, ct);
    case ABI_TILES:
        return next_tile(w, p, ct);
    case ABI_DIAGONAL:
        return next_lines(w, p, ct);
    case ABI_COLUMNS:
        return next_columns(w, p, ct);
    default:
        return next_row_part(w, p, ct);
    }
}

DEVICE u32 walk_next(struct walk *w, struct column_tile *ct)
{
    while (w->piece < w->pieces_end) {
        ct->line = 0;
        ct->columns = 0;
        ct->column = 0;
        if (next_of_piece(w, w->plan->pieces + w->piece, ct)) {
            if (!w->work->active)
                ct->bits = 0;
            return 1;
        }
        w->piece++;
        w->element = w->column = 0;
    }
    return 0;
}

#endif
