/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points of the CPU kernels, one for each phase (templates/abi.h). Code is specialised on the kernel
   config; the mask is data, in the plan's tables.
     attention_pack             K, V of a key head -> packed operands
     attention_forward          items of the plan: O, LSE                        (forward.h)
     attention_pack_backward    K, V, as the backward pass takes them
     attention_delta            items of the plan: delta, where a bias needs it before all of dQ (delta.h)
     attention_dq               items of the plan: dQ, delta                     (backward.h)
     attention_pack_transposed  Q, dO of a head -> packed operands
     attention_dkv              items of the transposed plan: dK, dV             (backward.h)
     attention_diagonals        sums of dX along diagonals, with a bias          (bias_gradient.h)
     attention_key_heads        dK, dV of key heads, where query heads share them (key_heads.h)
   A phase gets indices begin .. end - 1 of its heads or work items, and the scratch of its thread. */
#include "cpu/freestanding.h"
#include "cpu/pack/pack.h"

#include "cpu/forward.h"
#if BACKWARD
#include "cpu/backward.h"
#include "cpu/key_heads.h"
#endif

#define ENTRY(name)                                                                       \
    __attribute__((visibility("default"))) void name(const struct abi_args *a, u64 begin, \
                                                     u64 end, u8 *scratch);               \
    void name(const struct abi_args *a, u64 begin, u64 end, u8 *scratch)

static void phase_begin(u8 *scratch)
{
    matrix_begin();
#if MATRIX
    gathered_forget(scratch);
#else
    (void)scratch;
#endif
}

/* Sequence and head of an index of a phase over heads. */
static struct sequence head_at(const struct abi_args *a, u64 index, enum side side)
{
    return sequence_at(a, a->first_batch + (u32)(index / a->heads), (u32)(index % a->heads),
                       side);
}

static struct abi_work work_at(const struct abi_args *a, const struct abi_plan *p, u64 index,
                               struct sequence *s)
{
    struct abi_work w = p->work[index / a->slice_batch];
    *s = sequence_at(a, a->first_batch + (u32)(index % a->slice_batch), w.head,
                     p == &a->transposed ? ROWS_ARE_KEYS : ROWS_ARE_QUERIES);
    return w;
}

/* True if the item lies beyond the rows that this launch writes: a plan covers the mask's length. */
INLINE int item_beyond(const struct sequence *s, const struct abi_item *item)
{
    return item->row0 >= s->rows;
}

/* Number of the indices k .. end - 1 that are consecutive items of one sequence. */
static u32 neighbours_at(const struct abi_args *a, const struct abi_plan *p, u64 k, u64 end)
{
    const struct abi_work *w = p->work + k;
    u32 ret = 1;
    if (a->slice_batch > 1)
        return 1;
    while (ret < RUN_ITEMS && k + ret < end && w[ret].head == w->head &&
           w[ret].item == w->item + ret)
        ret++;
    return ret;
}

/* True if the head has the place for K and V (layout.h). */
INLINE int packs_keys(const struct sequence *s)
{
#if GROUPED
    return s->h % s->a->group == 0;
#else
    (void)s;
    return 1;
#endif
}

ENTRY(attention_pack)
{
    (void)scratch;
    for (u64 k = begin; k < end; k++) {
        struct sequence s = head_at(a, k, ROWS_ARE_KEYS);
        if (!packs_keys(&s))
            continue;
        operand_pack(&s, OPERAND_KEY, a->forward.uses, FOR_SCORES);
        operand_pack(&s, OPERAND_VALUE, a->forward.uses, FOR_SUMS);
    }
}

ENTRY(attention_forward)
{
    phase_begin(scratch);
    for (u64 k = begin; k < end;) {
        struct sequence s;
        struct abi_work w = work_at(a, &a->forward, k, &s);
        const struct abi_item *item = &a->forward.items[w.item];
        const u32 some = neighbours_at(a, &a->forward, k, end);
        k += item_beyond(&s, item) ? 1 : forward_items(&s, item, some, scratch);
    }
    matrix_end();
}

#if BACKWARD
ENTRY(attention_pack_backward)
{
    (void)scratch;
    for (u64 k = begin; k < end; k++) {
        struct sequence s = head_at(a, k, ROWS_ARE_KEYS);
#if BIAS
        if (s.b == 0)
            bias_clear(a, s.h);
#endif
        if (!packs_keys(&s))
            continue;
        operand_pack(&s, OPERAND_KEY, a->forward.uses, FOR_SCORES | FOR_SUMS);
        operand_pack(&s, OPERAND_VALUE, a->forward.uses, FOR_SCORES);
    }
}

/* A phase of its own, after dQ: all four packed operands would not stay in a core's cache together. */
ENTRY(attention_pack_transposed)
{
    (void)scratch;
    for (u64 k = begin; k < end; k++) {
        struct sequence s = head_at(a, k, ROWS_ARE_QUERIES);
        operand_pack(&s, OPERAND_QUERY, a->transposed.uses, FOR_SCORES | FOR_SUMS);
        operand_pack(&s, OPERAND_GRADIENT, a->transposed.uses, FOR_SCORES | FOR_SUMS);
    }
}

#if BIAS
/* Before dQ, where items share rows. */
ENTRY(attention_delta)
{
    phase_begin(scratch);
    for (u64 k = begin; k < end && deltas_shared(a); k++) {
        struct sequence s;
        struct abi_work w = work_at(a, &a->forward, k, &s);
        const struct abi_item *item = &a->forward.items[w.item];
        if (!item_beyond(&s, item))
            delta_item(&s, item, scratch);
    }
    matrix_end();
}

ENTRY(attention_dq)
{
    phase_begin(scratch);
    for (u64 k = begin; k < end; k++) {
        struct abi_work w = a->forward.work[k];
        if (a->first_batch == 0)
            bias_part_clear(a, k);
        for (u32 b = 0; b < a->slice_batch; b++) {
            struct sequence s = sequence_at(a, a->first_batch + b, w.head, ROWS_ARE_QUERIES);
            s.part = bias_part(a, k);
            dq_item(&s, &a->forward.items[w.item], scratch);
        }
    }
    matrix_end();
}

/* After dK and dV: each item left its sums. Only the batch's last sequence adds them up. */
ENTRY(attention_diagonals)
{
    (void)scratch;
    for (u64 k = begin; k < end; k++) {
        struct sequence s = head_at(a, k, ROWS_ARE_QUERIES);
        if (a->d_diagonal && s.b == a->batch - 1)
            bias_diagonals(a, s.h);
    }
}
#else
ENTRY(attention_dq)
{
    phase_begin(scratch);
    for (u64 k = begin; k < end;) {
        struct sequence s;
        struct abi_work w = work_at(a, &a->forward, k, &s);
        const struct abi_item *item = &a->forward.items[w.item];
        const u32 some = neighbours_at(a, &a->forward, k, end);
        k += item_beyond(&s, item) ? 1 : backward_items(&s, &a->forward, item, some, scratch);
    }
    matrix_end();
}
#endif

ENTRY(attention_dkv)
{
    phase_begin(scratch);
    for (u64 k = begin; k < end;) {
        struct sequence s;
        struct abi_work w = work_at(a, &a->transposed, k, &s);
        const struct abi_item *item = &a->transposed.items[w.item];
        const u32 some = neighbours_at(a, &a->transposed, k, end);
        k +=
            item_beyond(&s, item) ? 1 : backward_items(&s, &a->transposed, item, some, scratch);
    }
    matrix_end();
}

#if GROUPED
ENTRY(attention_key_heads)
{
    const u32 heads = a->heads / a->group;
    phase_begin(scratch);
    for (u64 k = begin; k < end; k++)
        key_head_sum(a, a->first_batch + (u32)(k / heads), (u32)(k % heads));
    matrix_end();
}
#endif
#endif
