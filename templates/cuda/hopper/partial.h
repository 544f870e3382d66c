/* SPDX-License-Identifier: Apache-2.0 */
/* Global rows that are cut into parts. Each part, a split item, leaves its sums in floats in a partial slot of the workspace:
   one or two sums, then two numbers. A launch after that merges them: a block takes a row, a thread a position of the head.
   Slots are added in order. */
#ifndef MASKC_CUDA_HOPPER_PARTIAL_H
#define MASKC_CUDA_HOPPER_PARTIAL_H
#include "cuda/hopper/output.h"

enum {
    PARTIAL_WIDTH = 16 * STEPS,
    PARTIAL_NUMBERS = (1 + BACKWARD) * PARTIAL_WIDTH,
    PARTIAL_FLOATS = PARTIAL_NUMBERS + 8,
};

DEVICE float *partial_slot(const struct abi_args *a, const struct work_item *work, u32 slot)
{
    const u64 head = (u64)(work->b - a->first_batch) * a->heads + work->h;
    return (float *)(a->pack + head * a->pack_stride + a->partial_at) +
           (a->delta_rows + slot) * PARTIAL_FLOATS;
}

/* The first row of the warpgroup, which its first four lanes hold. */
DEVICE void partial_store_sum(const struct warpgroup *g, const struct sums *s, float *to)
{
    UNROLL
    for (u32 f = 0; f < 2 * STEPS; f++)
        if (g->thread < 4)
            put_two(to + 8 * f + 2 * quad_lane(), s->x[4 * f], s->x[4 * f + 1]);
}

/* ---- the launch that merges ---- */

struct merge {
    const struct abi_args *a;
    struct work_item work;
    const struct abi_item *item;
};

/* Work `index` of the works that merge, which are the last of the plan's. */
DEVICE struct merge merge_at(const struct abi_args *a, const struct abi_plan *plan, u32 index)
{
    struct merge m;
    const struct abi_work entry =
        plan->work[plan->works - plan->merge + index / a->slice_batch];
    m.a = a;
    m.work.b = a->first_batch + index % a->slice_batch;
    m.work.h = entry.head;
    work_item_sequence(&m.work, a, plan == &a->transposed);
    m.item = plan->items + entry.item;
    return m;
}

DEVICE u32 merge_count(const struct abi_args *a, const struct abi_plan *plan)
{
    return plan->merge * a->slice_batch;
}

DEVICE const float *merge_slot(const struct merge *m, u32 slot)
{
    return partial_slot(m->a, &m->work, m->item->partial_slot + slot);
}

/* The thread's position of a sum of a slot; 0 past the head. */
DEVICE float merge_position(const struct merge *m, u32 slot, u32 sum)
{
    return THREAD < HEAD_DIM ? merge_slot(m, slot)[sum * PARTIAL_WIDTH + THREAD] : 0;
}

/* The same over all slots. */
DEVICE float merge_sum(const struct merge *m, u32 sum)
{
    float x = 0;
    NO_UNROLL
    for (u32 s = 0; s < m->item->partial_slots; s++)
        x += merge_position(m, s, sum);
    return x;
}

DEVICE void merge_store(const struct merge *m, const struct abi_tensor *tensor, float x)
{
    const struct view to = view_of(tensor, &m->work);
    u8 *row = to.data + m->item->row0 * to.row;
    if (THREAD >= HEAD_DIM || m->item->row0 >= m->work.exist)
        return;
    if (element_bytes(m->a, tensor) == CUDA_FLOAT)
        ((float *)row)[THREAD] = x;
    else
        ((half_t *)row)[THREAD] = (half_t)half_pack(x, 0);
}

#endif
