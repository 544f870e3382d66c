/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the device "cpu": the indices of a launch, and how threads take them. */
#pragma once
#include "runtime/device/cpu_code.h"
#include <stdatomic.h>

/* Indices that threads take one by one, whoever is free. OpenMP's own dynamic loops take 2 to 4 us each, a
   twentieth of a launch at n=128. */
struct queue {
    _Alignas(64) _Atomic(u64) next;
};

static inline u64 queue_take(struct queue *q)
{
    return atomic_fetch_add_explicit(&q->next, 1, memory_order_relaxed);
}

static inline entry_fn *entry_of(const struct device_code *c, const struct phase *phase)
{
    const struct launch_record *r = c->record;
    if (phase >= r->forward && phase < r->forward + r->n_forward)
        return c->forward[phase - r->forward];
    return c->backward[phase - r->backward];
}

static inline const struct abi_plan *plan_of(const struct abi_args *a, enum abi_over over)
{
    return over_transposed(over) ? &a->transposed : &a->forward;
}

/* Indices of one entry of the work list. */
static inline u64 indices_each(const struct abi_args *a, enum abi_over over)
{
    return over == ABI_OVER_WORK ? 1 : a->slice_batch;
}

static inline u64 indices(const struct abi_args *a, enum abi_over over)
{
    if (over == ABI_OVER_HEADS)
        return (u64)a->heads * a->slice_batch;
    if (over == ABI_OVER_KEY_HEADS)
        return (u64)a->heads / a->group * a->slice_batch;
    return plan_of(a, over)->works * indices_each(a, over);
}

/* Phases over heads know no items. */
static inline bool over_items(enum abi_over over)
{
    return over != ABI_OVER_HEADS && over != ABI_OVER_KEY_HEADS;
}

static inline bool has_splits(const struct abi_args *a, enum abi_over over)
{
    return over_items(over) && plan_of(a, over)->uses & ABI_SPLIT;
}

/* Makes *a the arguments of sequence b if it begins at row starts[b]: tensors and LSE advance to
   that row, and n is smaller by as many rows. If no row is left, n is 1 and the sequence's length
   0, since no launch has 0 rows. */
static inline void begin_at_start(const struct device_launch *l, u32 b, struct abi_args *a)
{
    struct abi_tensor *all[] = {&a->q,   &a->k,   &a->v,   &a->o,     &a->d_o,
                                &a->d_q, &a->d_k, &a->d_v, &a->sum_k, &a->sum_v};
    if (!l->starts)
        return;
    static const i32 none = 0;
    const bool empty = (u32)l->starts[b] >= a->n;
    const i64 start = empty ? (i64)a->n - 1 : l->starts[b];
    if (empty) /* length[b] is 0 */
        a->length = (const i32 *)((uintptr_t)&none - b * sizeof none);
    for (int k = 0; k < 10; k++)
        if (all[k]->data)
            all[k]->data =
                (u8 *)all[k]->data +
                start * all[k]->row * args_element_bytes(a, all[k], l->element_bytes);
    a->lse += start;
    a->n -= (u32)start;
}

/* ---- cpu_heads.c: heads as a whole ---- */

enum { MOST_HEADS = 256, MOST_OWNERS = 64 };

/* Key heads; `order`: by falling cost over all phases. */
struct heads {
    u32 order[MOST_HEADS];
    u64 cost[MOST_HEADS]; /* of head h, by the plan */
    u64 sum;
};

/* True if each thread should do whole heads. A thread that packs a head and does its items finds the packed operands in
   its own cache, and no thread waits for others between phases. Sets *ret if true. */
bool heads_whole(const struct device_launch *l, u64 threads, struct heads *ret);

/* The share of thread `thread`. There is a queue for each thread, MOST_OWNERS at most. */
void heads_run(const struct device_code *c, const struct device_launch *l,
               const struct heads *heads, u64 threads, u64 thread, struct queue *queue);
