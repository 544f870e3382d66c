/* SPDX-License-Identifier: Apache-2.0 */
/* What a block does now: one item of the work list for one sequence. And the reductions over a
   row, which is a quad's in a row block, and everybody's in the row pass. */
#ifndef MASKC_CUDA_SIMT_WORK_ITEM_H
#define MASKC_CUDA_SIMT_WORK_ITEM_H
#include "cuda/common/work_item.h"
#include "cuda/simt/layout.h"

DEVICE struct job job_at(const struct abi_args *a, const struct abi_plan *plan, u32 index)
{
    struct job j;
    struct abi_work work = plan->work[index / a->slice_batch];
    j.b = a->first_batch + index % a->slice_batch;
    j.h = work.head;
    j.item = plan->items + work.item;
    job_sequence(&j, a);
    j.single = j.item->pieces > 0 && plan->pieces[j.item->piece].kind == ABI_ROWS;
    j.row0 = j.item->row0;
    u32 r = j.single ? 0 : quad();
    j.row = j.row0 + r;
    u32 owned = r < j.item->rows && (j.item->own[r / 32] >> (r % 32) & 1);
    j.writes = owned && j.row < j.exist;
    j.active = owned && j.row < j.length;
    return j;
}

DEVICE u32 job_count(const struct abi_args *a, const struct abi_plan *plan)
{
    return plan->works * a->slice_batch;
}

/* Whether this thread writes what there is one of for each row. */
DEVICE u32 job_speaks(const struct job *j)
{
    return j->writes && (j->single ? THREAD == 0 : quad_lane() == 0);
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

/* The same over all threads that work on the thread's row. */
DEVICE float row_sum(const struct job *j, float x)
{
    x = quad_sum(x);
    return j->single ? block_reduce(x, 0) : x;
}

DEVICE float row_max(const struct job *j, float x)
{
    x = quad_max(x);
    return j->single ? block_reduce(x, 1) : x;
}

#endif
