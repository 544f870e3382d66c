/* SPDX-License-Identifier: Apache-2.0 */
/* Work of a block: one item of the work list for one sequence and one head, and that sequence's part of the tensors.
   Each family finds its work items in its own work_item.h. */
#ifndef MASKC_CUDA_COMMON_WORK_ITEM_H
#define MASKC_CUDA_COMMON_WORK_ITEM_H
#include "cuda/common/numbers.h"
#include "kernel_config.h"

enum { TF32 = DTYPE == ABI_TF32, FLOATS = DTYPE == ABI_F32 || TF32, ELEMENT = FLOATS ? 4 : 2 };

struct work_item {
    const struct abi_args *a;
    u32 index; /* tiled: among the launch's works */
    u32 b, h;
    i64 first;      /* tensor row of position 0: 0, or where the packed sequence begins */
    u32 length;     /* rows that take part; without RECTANGULAR as many columns do */
    u32 columns;    /* RECTANGULAR: columns that take part */
    u32 exist;      /* rows that are written */
    u32 global_row; /* the item is one global row, which the whole block works on */
    u32 row0, row;  /* simt: the first row, and the thread's */
    u32 writes;     /* simt: the thread's row is this item's, and exists */
    u32 active;     /* simt: and takes part */
    const struct abi_plan *plan; /* tiled */
    const struct abi_item *item;
};

/* Each side has rows and a length of its own. */
#if RECTANGULAR
DEVICE void work_item_sides(struct work_item *work, const struct abi_args *a, u32 rows_are_keys)
{
    const u32 queries = a->length ? clamp_length(a->length[work->b], a->queries) : a->queries;
    const u32 keys = a->key_length ? clamp_length(a->key_length[work->b], a->keys) : a->keys;
    work->exist = rows_are_keys ? a->keys : a->queries;
    work->length = rows_are_keys ? keys : queries;
    work->columns = rows_are_keys ? queries : keys;
}
#endif

/* Sets the place and the length of sequence b. */
DEVICE void work_item_sequence(struct work_item *work, const struct abi_args *a,
                               u32 rows_are_keys)
{
    work->a = a;
    work->first = 0;
#if RECTANGULAR
    work_item_sides(work, a, rows_are_keys);
#else
    (void)rows_are_keys;
    work->length = work->exist = a->n;
    if (a->offsets) {
        work->first = a->offsets[work->b];
        work->length = work->exist =
            clamp_length(a->offsets[work->b + 1] - a->offsets[work->b], a->n);
    } else if (a->length) {
        work->length = clamp_length(a->length[work->b], a->n);
    }
#endif
}

/* Columns at or beyond it take no part. */
DEVICE u32 column_length(const struct work_item *work)
{
    return RECTANGULAR ? work->columns : work->length;
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

struct __attribute__((aligned(8))) f2 {
    float x, y;
};

DEVICE struct f2 get_two(const float *from)
{
    return *(const struct f2 *)from;
}

DEVICE void put_two(float *to, float x, float y)
{
    struct f2 both = {x, y};
    *(struct f2 *)to = both;
}

/* The head that a tensor has head h in: K and V have one for each group of query heads. */
DEVICE u32 head_in(const struct abi_args *a, const struct abi_tensor *t, u32 h)
{
#if GROUPED
    return t == &a->k || t == &a->v ? h / a->group : h;
#else
    (void)a, (void)t;
    return h;
#endif
}

/* Bytes of an element: dK and dV of query heads that share a key head are floats (key_heads.h). */
DEVICE u32 element_bytes(const struct abi_args *a, const struct abi_tensor *t)
{
    return GROUPED && (t == &a->d_k || t == &a->d_v) ? CUDA_FLOAT : ELEMENT;
}

/* One sequence and head of a tensor; bytes. */
struct view {
    u8 *data;
    i64 row;
};

DEVICE struct view view_of(const struct abi_tensor *t, const struct work_item *work)
{
    struct view v;
    const u32 bytes = element_bytes(work->a, t);
    i64 element =
        work->b * t->batch + work->first * t->row + head_in(work->a, t, work->h) * t->head;
    v.data = (u8 *)t->data + element * bytes;
    v.row = t->row * bytes;
    return v;
}

#endif
