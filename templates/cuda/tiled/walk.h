/* SPDX-License-Identifier: Apache-2.0 */
/* The visit of a row block's pieces as a sequence of groups of up to 32 columns. Whatever its kind, a
   group is a list of columns to copy and a word of bits for each row. Walking is the same for
   all threads of the block but for the words. */
#ifndef MASKC_CUDA_TILED_WALK_H
#define MASKC_CUDA_TILED_WALK_H
#include "cuda/tiled/work_item.h"

/* Few words: three groups are known at a time. */
struct group {
    u32 column;  /* of slot 0, a multiple of 16; or GATHERED + its index in plan->columns */
    u32 slots;   /* those that count: first + 64 * (last + 1), all below the sequence's length;
                    0: no group */
    u32 pattern; /* 0: all rows see all these slots; else as abi_tile's */
    i32 stored;  /* score column in the scratch of slot 0 */
};

enum { GATHERED = 1u << 31, SLOT_END = 64 };

DEVICE u32 group_begin(const struct group *g)
{
    return g->slots % SLOT_END;
}

DEVICE u32 group_end(const struct group *g)
{
    return g->slots / SLOT_END;
}

DEVICE u32 is_gathered(const struct group *g)
{
    return g->column >> 31;
}

struct walk {
    const struct job *job;
    u32 piece, pieces_end;
    u32 element; /* within the piece: the next one */
    u32 column,
        end; /* of the range: where the next group begins, and where that ends; nothing is left
                        of it where column >= end */
    u32 stored; /* score columns so far */
};

DEVICE struct walk walk_start(const struct job *j)
{
    struct walk w;
    w.job = j;
    w.piece = j->item->piece;
    w.pieces_end = j->item->row0 < j->length ? w.piece + j->item->pieces : w.piece;
    w.element = w.column = w.end = w.stored = 0;
    return w;
}

DEVICE void group_slots(struct group *g, struct walk *w, u32 begin, u32 end)
{
    g->slots = begin + SLOT_END * end;
    g->stored = (i32)(w->stored - begin);
    w->stored += end - begin;
}

DEVICE u32 next_tile(struct walk *w, const struct abi_piece *p, struct group *g)
{
    const u32 length = w->job->length;
    while (w->element < p->count) {
        const struct abi_tile *t = w->job->plan->tiles + p->first + w->element++;
        if (t->col0 >= length)
            continue;
        g->column = t->col0;
        g->pattern = t->pattern;
        group_slots(g, w, 0, smaller(GROUP, length - t->col0));
        return 1;
    }
    return 0;
}

/* The range's next group; `begin`: its first slot that counts. */
DEVICE void range_group(struct walk *w, struct group *g, u32 begin)
{
    g->column = w->column;
    g->pattern = 0;
    group_slots(g, w, begin, smaller(GROUP, w->end - w->column));
    w->column += GROUP;
}

/* Groups of a range are aligned to 16 columns, so that dropout needs few calls. */
DEVICE u32 next_range(struct walk *w, const struct abi_piece *p, struct group *g)
{
    const u32 length = w->job->length;
    while (w->element < p->count) {
        struct abi_range r = w->job->plan->ranges[p->first + w->element++];
        w->end = smaller(r.end, length);
        w->column = r.begin & ~15u;
        if (r.begin < w->end) {
            range_group(w, g, r.begin & 15u);
            return 1;
        }
        w->end = 0;
    }
    return 0;
}

DEVICE u32 next_gather(struct walk *w, const struct abi_piece *p, struct group *g)
{
    const u32 length = w->job->length;
    while (w->element < p->count) {
        const struct abi_gather *t = w->job->plan->gathers + p->first + w->element++;
        const u32 *columns = w->job->plan->columns + t->first;
        u32 count = t->count;
        while (count && columns[count - 1] >= length)
            count--;
        if (!count)
            continue;
        g->column = GATHERED + t->first;
        g->pattern = t->pattern;
        group_slots(g, w, 0, count);
        return 1;
    }
    return 0;
}

/* Within a range no table is read. */
DEVICE void walk_next(struct walk *w, struct group *g)
{
    if (w->column < w->end) {
        range_group(w, g, 0);
        return;
    }
    while (w->piece < w->pieces_end) {
        const struct abi_piece *p = w->job->plan->pieces + w->piece;
        u32 found = p->kind == ABI_TILES    ? next_tile(w, p, g)
                    : p->kind == ABI_BLOCKS ? next_range(w, p, g)
                                            : next_gather(w, p, g);
        if (found)
            return;
        w->piece++;
        w->element = 0;
    }
    g->column = g->slots = g->pattern = 0;
}

/* The slots that count. */
DEVICE u32 group_bits(const struct group *g)
{
    return bits_between(group_begin(g), group_end(g));
}

DEVICE u32 group_column(const struct group *g, const struct job *j, u32 slot)
{
    return is_gathered(g) ? j->plan->columns[g->column - GATHERED + slot] : g->column + slot;
}

#endif
