/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that two items share: what the partial one leaves of a row for the one that resumes. Sums as
   they stand, unscaled, in floats, and with them two numbers: m and l of softmax, or in the backward
   pass what is missing from delta. They lie behind the head's packed operands. */
#ifndef MASKC_CPU_PARTIAL_H
#define MASKC_CPU_PARTIAL_H
#include "cpu/row_block.h"

INLINE float *partial_sums(const struct row_block *t, u32 which, u32 r)
{
    float *first = (float *)(void *)((u8 *)pack_of_head(&t->s) + t->s.a->partial_at);
    return first + ((u64)which * padded_rows(t->s.a) + row_of(t->item, r)) * WIDTH;
}

/* Two of them. */
INLINE float *partial_numbers(const struct row_block *t, u32 r)
{
    float *first = (float *)(void *)((u8 *)pack_of_head(&t->s) + t->s.a->partial_at);
    return first + (u64)(1 + BACKWARD) * padded_rows(t->s.a) * WIDTH + 2 * row_of(t->item, r);
}

INLINE int row_merged(const struct row_block *t, u32 r)
{
    return row_live(t, r) && t->item->merge[0] >> r & 1;
}

/* Rows of a class lie far apart: asked for before there is work to do, they are there after. */
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

/* Sums begin with what a partial item left, with 0 in other rows; with nothing where a product will begin them
   (block_sums()). */
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

/* For who needs them now. */
static void row_block_zero_sums(const struct row_block *t, u32 which)
{
    float *to = t->m->sums[which][0];
    for (u32 k = 0; k < t->rows * WIDTH && t->m->blank[which]; k += LANES)
        store(to + k, splat(0));
    t->m->blank[which] = 0;
}

#endif
