/* SPDX-License-Identifier: Apache-2.0 */
/* The visit of a row block's pieces as a sequence of column tiles of up to 32 columns. Of whatever kind, a
   column tile is a list of columns to copy and a word of bits for each row. All threads of a block walk alike
   but for the words. */
#ifndef MASKC_CUDA_TILED_WALK_H
#define MASKC_CUDA_TILED_WALK_H
#include "cuda/tiled/work_item.h"

/* Small, since three are known at a time. */
struct column_tile {
    u32 column; /* of slot 0, a multiple of 16; or GATHERED + its index in plan->columns */
    u32 slots; /* those that count, below the sequence's length: first + 64 * (last + 1); 0: no tile */
    u32 pattern; /* 0: all rows see all these slots; else as abi_tile's */
    i32 stored;  /* score column in the scratch of slot 0 */
};

enum { GATHERED = 1u << 31, SLOT_END = 64 };

DEVICE u32 first_slot(const struct column_tile *ct)
{
    return ct->slots % SLOT_END;
}

DEVICE u32 end_slot(const struct column_tile *ct)
{
    return ct->slots / SLOT_END;
}

DEVICE u32 is_gathered(const struct column_tile *ct)
{
    return ct->column >> 31;
}

struct walk {
    const struct work_item *work;
    u32 length; /* columns at or beyond it take no part */
    u32 piece, pieces_end;
    u32 element; /* within the piece: the next one */
    u32 column,
        end; /* of the range: where the next column tile begins, and the end; column >= end: nothing is left */
    u32 stored; /* score columns so far */
};

DEVICE struct walk walk_start(const struct work_item *work)
{
    struct walk w;
    w.work = work;
    w.length = column_length(work);
    w.piece = work->item->piece;
    w.pieces_end = work->item->row0 < work->length ? w.piece + work->item->pieces : w.piece;
    w.element = w.column = w.end = w.stored = 0;
    return w;
}

DEVICE void column_tile_slots(struct column_tile *ct, struct walk *w, u32 begin, u32 end)
{
    ct->slots = begin + SLOT_END * end;
    ct->stored = (i32)(w->stored - begin);
    w->stored += end - begin;
}

DEVICE u32 next_tile(struct walk *w, const struct abi_piece *p, struct column_tile *ct)
{
    while (w->element < p->count) {
        const struct abi_tile *t = w->work->plan->tiles + p->first + w->element++;
        if (t->col0 >= w->length)
            continue;
        ct->column = t->col0;
        ct->pattern = t->pattern;
        column_tile_slots(ct, w, 0, smaller(TILE_COLS, w->length - t->col0));
        return 1;
    }
    return 0;
}

/* The range's next column tile; `begin`: its first slot that counts. */
DEVICE void range_tile(struct walk *w, struct column_tile *ct, u32 begin)
{
    ct->column = w->column;
    ct->pattern = 0;
    column_tile_slots(ct, w, begin, smaller(TILE_COLS, w->end - w->column));
    w->column += TILE_COLS;
}

/* Column tiles of a range are aligned to 16 columns, so that dropout needs few calls. */
DEVICE u32 next_range(struct walk *w, const struct abi_piece *p, struct column_tile *ct)
{
    while (w->element < p->count) {
        struct abi_range r = w->work->plan->ranges[p->first + w->element++];
        w->end = smaller(r.end, w->length);
        w->column = r.begin & ~15u;
        if (r.begin < w->end) {
            range_tile(w, ct, r.begin & 15u);
            return 1;
        }
        w->end = 0;
    }
    return 0;
}

DEVICE u32 next_gather(struct walk *w, const struct abi_piece *p, struct column_tile *ct)
{
    while (w->element < p->count) {
        const struct abi_gather *t = w->work->plan->gathers + p->first + w->element++;
        const u32 *columns = w->work->plan->columns + t->first;
        u32 count = t->count;
        /* A sequence of the mask's length has all columns. */
        while (w->length < w->work->plan->n && count && columns[count - 1] >= w->length)
            count--;
        if (!count)
            continue;
        ct->column = GATHERED + t->first;
        ct->pattern = t->pattern;
        column_tile_slots(ct, w, 0, count);
        return 1;
    }
    return 0;
}

/* The next column tile, with 0 slots at the end. Within a range it reads no table. */
DEVICE void walk_next(struct walk *w, struct column_tile *ct)
{
    if (w->column < w->end) {
        range_tile(w, ct, 0);
        return;
    }
    while (w->piece < w->pieces_end) {
        const struct abi_piece *p = w->work->plan->pieces + w->piece;
        u32 found = p->kind == ABI_TILES    ? next_tile(w, p, ct)
                    : p->kind == ABI_BLOCKS ? next_range(w, p, ct)
                                            : next_gather(w, p, ct);
        if (found)
            return;
        w->piece++;
        w->element = 0;
    }
    ct->column = ct->slots = ct->pattern = 0;
}

/* The slots that count. */
DEVICE u32 column_tile_bits(const struct column_tile *ct)
{
    return bits_between(first_slot(ct), end_slot(ct));
}

DEVICE u32 slot_column(const struct column_tile *ct, const struct work_item *work, u32 slot)
{
    return is_gathered(ct) ? work->plan->columns[ct->column - GATHERED + slot]
                           : ct->column + slot;
}

#endif
