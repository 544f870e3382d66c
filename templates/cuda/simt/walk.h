/* SPDX-License-Identifier: Apache-2.0 */
/* The visit of an item's pieces as a sequence of column tiles of up to 32 score columns. Arithmetic knows two
   kinds: tiles, whose columns are the same for every row, and lines, where each row has its own. All threads of
   a block walk alike but for `bits`. */
#ifndef MASKC_CUDA_SIMT_WALK_H
#define MASKC_CUDA_SIMT_WALK_H
#include "cuda/simt/work_item.h"

struct column_tile {
    u32 is_tile;    /* 1: a tile; 0: lines */
    u32 bits;       /* bit s: the thread's row sees slot s */
    u32 begin, end; /* slots that count */
    i32 column;     /* of slot 0: in a tile a multiple of 32; unused with `columns` */
    i32 stored;     /* score column in the scratch of slot 0 (of slot `begin`, at least 0) */
    const u32 *columns; /* tile: of slot 0, 1, ...; null: column, column + 1, ... */
    const struct abi_line
        *line; /* lines of a row block; null on a global row: column + 32 s + quad */
};

struct walk {
    const struct abi_plan *plan;
    const struct work_item *work;
    u32 piece, pieces_end;
    u32 element; /* within the piece */
    u32 column;  /* within the range: where the next column tile begins; 0: at its start */
    u32 stored;  /* score columns so far */
};

DEVICE struct walk walk_start(const struct abi_plan *plan, const struct work_item *work)
{
    struct walk w;
    w.plan = plan;
    w.work = work;
    w.piece = work->item->piece;
    w.pieces_end = work->row0 < work->length ? w.piece + work->item->pieces : w.piece;
    w.element = w.column = w.stored = 0;
    return w;
}

/* Sets the slots of *ct to begin .. end - 1 and takes score columns for them. */
DEVICE void column_tile_slots(struct column_tile *ct, struct walk *w, u32 begin, u32 end)
{
    ct->begin = begin;
    ct->end = end;
    ct->stored = (i32)(w->stored - begin);
    w->stored += end - begin;
}

/* The column of slot s, for the thread's row. */
DEVICE u32 slot_column(const struct column_tile *ct, u32 s)
{
    if (ct->columns)
        return ct->columns[s];
    if (ct->is_tile)
        return (u32)ct->column + s;
    if (!ct->line)
        return (u32)ct->column + 32 * s + quad();
    return (u32)(ct->line[s].col0 + (i32)(ct->line[s].step * quad()));
}

/* Index in the scratch of the score of slot s, for the thread's row. */
DEVICE u64 slot_scratch(const struct column_tile *ct, u32 s)
{
    return (u64)(ct->stored + (i32)s) * BLOCK_ROWS + quad();
}

#endif
