/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that two items share: the first item (split) stores its partial result of a row, the second one (merge) starts
   from it. A partial result has the sums, unscaled, in floats, and two numbers: m and l of softmax, or
   delta_correction in the backward pass. It lies behind the head's packed operands. */
#ifndef MASKC_CPU_PARTIAL_H
#define MASKC_CPU_PARTIAL_H
#include "cpu/row_block.h"

INLINE float *partial_sums(const struct row_block *t, u32 which, u32 r)
{
    float *first = (float *)(void *)((u8 *)pack_of_head(&t->s) + t->s.a->partial_at);
    return first + ((u64)which * padded_rows(t->s.a) + row_of(t->item, r)) * WIDTH;
}

/* The row's two numbers. */
INLINE float *partial_numbers(const struct row_block *t, u32 r)
{
    float *first = (float *)(void *)((u8 *)pack_of_head(&t->s) + t->s.a->partial_at);
    return first + (u64)(1 + BACKWARD) * padded_rows(t->s.a) * WIDTH + 2 * row_of(t->item, r);
}

INLINE int row_merged(const struct row_block *t, u32 r)
{
    return row_live(t, r) && t->item->merge[0] >> r & 1;
}

/* Prefetches a split item's places: rows of a residue class lie far apart. */
static void partial_prefetch(const struct row_block *t, u32 sums)
{
    enum { LINE = 16 };
    if (!t->item->split)
        return;
    for (u32 k = 0; k < sums; k++) {
        const float *row = partial_sums(t, k, 0);
        for (u32 r = 0; r < t->item->rows; r++, row += (u64)t->item->step * WIDTH)
            for (u32 d = 0; d < WIDTH; d += LINE)
                __builtin_prefetch(row + d, 1);
    }
}

static void store_partial(const struct row_block *t, u32 sums, const float *first,
                          const float *second)
{
    const i64 step = t->item->step;
    float *numbers = partial_numbers(t, 0);
    for (u32 r = 0; r < t->item->rows; r++, numbers += 2 * step)
        if (row_live(t, r)) {
            numbers[0] = first[r];
            numbers[1] = second[r];
        }
    for (u32 k = 0; k < sums; k++) {
        float *to = partial_sums(t, k, 0);
        for (u32 r = 0; r < t->item->rows; r++, to += step * WIDTH)
            for (u32 d = 0; row_live(t, r) && d < WIDTH; d += LANES)
                store(to + d, load(t->m->sums[k][r] + d));
    }
}

/* Starts the sums: merged rows from the partial result, others from 0. Without merged rows a matrix unit's sums stay
   blank, as their first product starts them (block_sums()). */
static void merge_partial(const struct row_block *t, u32 which)
{
    float *to = t->m->sums[which][0];
    const float *from = partial_sums(t, which, 0);
    t->m->blank[which] = MATRIX && !t->item->merge[0];
    for (u32 r = 0; r < t->rows && !t->m->blank[which]; r++, to += WIDTH) {
        const int merged = row_merged(t, r);
        for (u32 d = 0; d < WIDTH; d += LANES)
            store(to + d, merged ? load(from + d) : splat(0));
        from += (i64)t->item->step * WIDTH;
    }
}

/* Zeros the sums if nothing has been added yet. */
static void row_block_zero_sums(const struct row_block *t, u32 which)
{
    float *to = t->m->sums[which][0];
    for (u32 k = 0; k < t->rows * WIDTH && t->m->blank[which]; k += LANES)
        store(to + k, splat(0));
    t->m->blank[which] = 0;
}

#endif
