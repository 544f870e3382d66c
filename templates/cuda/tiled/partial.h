/* SPDX-License-Identifier: Apache-2.0 */
/* Partial results of rows that several items share. A split item stores, for each row, its sums in floats,
   unscaled, and two numbers: maximum and sum of softmax, or in the backward pass the sum of dS. Another item
   merges them with its own, in a later launch (the merge pass). */
#ifndef MASKC_CUDA_TILED_PARTIAL_H
#define MASKC_CUDA_TILED_PARTIAL_H
#include "cuda/tiled/work_item.h"

/* A place holds the sums (two in the backward pass), then the numbers, in whole 32 bytes. */
enum {
    PARTIAL_WIDTH = 16 * STEPS,
    PARTIAL_NUMBERS = (1 + BACKWARD) * PARTIAL_WIDTH,
    PARTIAL_FLOATS = PARTIAL_NUMBERS + 8,
};

/* Each row of a head has a place; behind them, from delta_rows on, each partial slot has one. */
DEVICE float *partial_place(const struct abi_args *a, const struct work_item *work, u32 place)
{
    u64 head = (u64)(work->b - a->first_batch) * a->heads + work->h;
    return (float *)(a->pack + head * a->pack_stride + a->partial_at) +
           (u64)place * PARTIAL_FLOATS;
}

/* ---- row blocks ---- */

/* Where to store the lane's row (which = 0, 1); null: it is not the item's. */
DEVICE float *partial_to_store(const struct abi_args *a, const struct work_item *work,
                               u32 which)
{
    u32 r = block_row(which);
    return item_has_row(work, r, work->length) ? partial_place(a, work, row_position(work, r))
                                               : 0;
}

/* The stored partial result of that row; null: there is none. */
DEVICE const float *partial_to_merge(const struct abi_args *a, const struct work_item *work,
                                     u32 which)
{
    u32 r = block_row(which);
    return work->item->merge[r / 32] >> (r % 32) & 1 ? partial_to_store(a, work, which) : 0;
}

/* Stores the lane's part of a row's sum 0 or 1. */
DEVICE void sums_store_partial(const struct sums *s, u32 which, float *place, u32 sum)
{
    float *to = place + sum * PARTIAL_WIDTH + lane_pair();
    UNROLL
    for (u32 f = 0; f < 2 * STEPS; f++)
        put_two(to + 8 * f, which ? s->at[f].x[2] : s->at[f].x[0],
                which ? s->at[f].x[3] : s->at[f].x[1]);
}

/* Sums times `own` plus the stored ones times `theirs`. */
DEVICE void sums_merge_partial(struct sums *s, u32 which, const float *place, u32 sum,
                               float own, float theirs)
{
    const float *from = place + sum * PARTIAL_WIDTH + lane_pair();
    UNROLL
    for (u32 f = 0; f < 2 * STEPS; f++) {
        struct f2 left = get_two(from + 8 * f);
        float *x = &s->at[f].x[2 * which];
        x[0] = x[0] * own + left.x * theirs;
        x[1] = x[1] * own + left.y * theirs;
    }
}

/* ---- split global rows ---- */

/* True if the item has no columns of its own, but merges its partial slots. */
DEVICE u32 merges_partials(const struct work_item *work)
{
    return work->item->partial_slots && !work->item->split;
}

/* The item's first partial slot. */
DEVICE float *partial_slot_of(const struct abi_args *a, const struct work_item *work)
{
    return partial_place(a, work, (u32)a->delta_rows + work->item->partial_slot);
}

#endif
