/* SPDX-License-Identifier: Apache-2.0 */
/* What a block works on: one item of the work list for one sequence and one head, and that sequence's part of
   the tensors. How a family finds its work items stands in its own work_item.h. */
#ifndef MASKC_CUDA_COMMON_WORK_ITEM_H
#define MASKC_CUDA_COMMON_WORK_ITEM_H
#include "cuda/common/numbers.h"
#include "kernel_config.h"

enum { TF32 = DTYPE == ABI_TF32, FLOATS = DTYPE == ABI_F32 || TF32, ELEMENT = FLOATS ? 4 : 2 };

struct work_item {
    u32 index; /* tiled: among the launch's works */
    u32 b, h;
    i64 first;      /* tensor row of position 0: 0, or where the packed sequence begins */
    u32 length;     /* positions that take part */
    u32 exist;      /* positions that are written */
    u32 global_row; /* the item is one global row, which the whole block works on */
    u32 row0, row;  /* simt: the first row, and the thread's */
    u32 writes;     /* simt: the thread's row is this item's, and exists */
    u32 active;     /* simt: and takes part */
    const struct abi_plan *plan; /* tiled */
    const struct abi_item *item;
};

DEVICE void work_item_sequence(struct work_item *work, const struct abi_args *a)
{
    work->first = 0;
    work->length = work->exist = a->n;
    if (a->offsets) {
        work->first = a->offsets[work->b];
        work->length = work->exist =
            clamp_length(a->offsets[work->b + 1] - a->offsets[work->b], a->n);
    } else if (a->length) {
        work->length = clamp_length(a->length[work->b], a->n);
    }
}

DEVICE const float *lse_of(const struct abi_args *a, const struct work_item *work)
{
    return a->lse + work->b * a->lse_batch + work->h * a->lse_head + work->first;
}

DEVICE float *delta_of(const struct abi_args *a, const struct work_item *work)
{
    return a->delta + ((u64)work->b * a->heads + work->h) * a->delta_rows;
}

/* The scratch of the block. */
DEVICE float *scratch_of(const struct abi_args *a)
{
    return (float *)(a->scratch + (u64)BLOCK * a->scratch_stride);
}

/* ---- tensors ---- */

/* One sequence and head of a tensor; bytes. */
struct view {
    u8 *data;
    i64 row;
};

DEVICE struct view view_of(const struct abi_tensor *t, const struct work_item *work)
{
    struct view v;
    i64 element = work->b * t->batch + work->first * t->row + work->h * t->head;
    v.data = (u8 *)t->data + element * ELEMENT;
    v.row = t->row * ELEMENT;
    return v;
}

#endif
