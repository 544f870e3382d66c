/* SPDX-License-Identifier: Apache-2.0 */
/* SIMT family: the work items of a block, and reductions over a row: over a quad in a row block, over the block
   on a global row. */
#ifndef MASKC_CUDA_SIMT_WORK_ITEM_H
#define MASKC_CUDA_SIMT_WORK_ITEM_H
#include "cuda/common/work_item.h"
#include "cuda/simt/layout.h"

DEVICE struct work_item work_item_at(const struct abi_args *a, const struct abi_plan *plan,
                                     u32 index)
{
    struct work_item work;
    struct abi_work entry = plan->work[index / a->slice_batch];
    work.b = a->first_batch + index % a->slice_batch;
    work.h = entry.head;
    work.item = plan->items + entry.item;
    work_item_sequence(&work, a, plan == &a->transposed);
    work.global_row = work.item->pieces > 0 && plan->pieces[work.item->piece].kind == ABI_ROWS;
    work.row0 = work.item->row0;
    u32 r = work.global_row ? 0 : quad();
    work.row = work.row0 + r;
    u32 owned = r < work.item->rows && (work.item->own[r / 32] >> (r % 32) & 1);
    work.writes = owned && work.row < work.exist;
    work.active = owned && work.row < work.length;
    return work;
}

DEVICE u32 work_item_count(const struct abi_args *a, const struct abi_plan *plan)
{
    return plan->works * a->slice_batch;
}

/* True if this thread writes the row's single numbers, such as LSE. */
DEVICE u32 is_row_writer(const struct work_item *work)
{
    return work->writes && (work->global_row ? THREAD == 0 : quad_lane() == 0);
}

/* Sum (or maximum) of the quads' values over the block, in a fixed order. */
DEVICE float block_reduce(float x, u32 maximum)
{
    float *sums = SHARED() + SHARED_SUMS;
    SYNC();
    if (quad_lane() == 0)
        shared_put(sums + quad(), x);
    SYNC();
    x = shared_get(sums);
    NO_UNROLL
    for (u32 r = 1; r < BLOCK_ROWS; r++) {
        float y = shared_get(sums + r);
        x = maximum ? larger(x, y) : x + y;
    }
    return x;
}

/* Over all threads that work on the thread's row. */
DEVICE float reduce_row_sum(const struct work_item *work, float x)
{
    x = quad_sum(x);
    return work->global_row ? block_reduce(x, 0) : x;
}

DEVICE float reduce_row_max(const struct work_item *work, float x)
{
    x = quad_max(x);
    return work->global_row ? block_reduce(x, 1) : x;
}

#endif
