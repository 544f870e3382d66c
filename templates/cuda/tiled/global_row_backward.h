/* SPDX-License-Identifier: Apache-2.0 */
/* Global rows, backward: one query's dQ, or one key's dK and dV, in float.

       for each step of COLUMNS_AT_ONCE columns, for each column:
           row_entry                 s, p = 2^(s - LSE), dp = dO V^T with dropout
           dQ:      sum += p (dp - d), dq += p (dp - d) K, pk += p K; at the end dq -= sum pk, delta = d + sum
           dK, dV:  dk += p (dp - delta) Q, dv += p dO
       store_both */
#ifndef MASKC_CUDA_TILED_GLOBAL_ROW_BACKWARD_H
#define MASKC_CUDA_TILED_GLOBAL_ROW_BACKWARD_H
#include "cuda/tiled/backward.h"
#include "cuda/tiled/global_row.h"

typedef char row_pass_fits_backward[BACKWARD_SHARED >= 4 * ROW_FLOATS ? 1 : -1];

/* The scales of scores, as struct backward has them. */
DEVICE struct backward row_backward(const struct abi_args *a)
{
    struct backward b;
    b.a = a;
    backward_scales(&b, a);
    return b;
}

/* Rotates the columns of a step: a loop takes them, since the code for one is long, and indexes no registers. */
DEVICE void columns_next(struct columns *c)
{
    UNROLL
    for (u32 k = 1; k < COLUMNS_AT_ONCE; k++) {
        c->first[k - 1] = c->first[k];
        c->second[k - 1] = c->second[k];
    }
}

/* The row itself: Q and dO, or K and V. */
struct operands {
    struct part row, row_grad;
};

/* Column k of a step: P (see query_p) and dP after dropout. */
struct entry {
    float p, dp, kept;
};

DEVICE struct entry row_entry(const struct row_walk *w, const struct backward *b,
                              const struct operands *o, u32 k, float lse,
                              const struct columns *c)
{
    struct entry e;
    float dot = part_dot(&o->row, &c->first[0]);
    float grad = part_dot(&o->row_grad, &c->second[0]);
    if (ADD_BIAS)
        dot = dot * b->scale + row_bias(w, k) * (TRANSFORM == ABI_SPARSEGEN ? 1 : LOG2_E);
    e.kept = row_factor(w, row_draw(w, k), k);
    e.p = w->rows_are_keys ? probability(b, dot, lse, sparsegen_scale(b->a))
                           : query_p(b, dot, lse);
    e.p = row_has(w, k) ? e.p : 0;
    e.dp = grad * e.kept;
    return e;
}

/* With a bias: rowsum(dO o O), in all lane groups, an estimate of delta that keeps the sums small. Else 0. */
DEVICE float row_delta_estimate(const struct abi_args *a, const struct work_item *work,
                                const struct part *d_o)
{
    struct part o;
    float sum = 0;
    if (!ADD_BIAS)
        return 0;
    load_operand(&o, &a->o, work);
    UNROLL
    for (u32 k = 0; k < 8; k++)
        sum += d_o->at[k] * o.at[k];
    return lane_group_sum(sum);
}

/* Adds both sums of all partial results, shared out over the lane groups; returns those of dS. */
DEVICE float row_merge_partial(const struct abi_args *a, const struct work_item *work,
                               struct part *first, struct part *second)
{
    float ds_sum = 0;
    NO_UNROLL
    for (u32 s = lane_group(); s < work->item->partial_slots; s += LANE_GROUPS) {
        const float *partial_slot = partial_slot_of(a, work) + s * PARTIAL_FLOATS;
        part_merge(first, partial_slot);
        part_merge(second, partial_slot + PARTIAL_WIDTH);
        ds_sum += partial_slot[PARTIAL_NUMBERS];
    }
    return ds_sum;
}

/* Where two sums go, whether as floats, and the factor of the first. */
struct both_stored {
    const struct abi_args *a;
    const struct work_item *work;
    struct view to, to_second;
    float by;
    u32 floats;
};

/* The row itself where its elements are floats. */
DEVICE float *row_of_floats(const struct both_stored *x)
{
    const u32 row = x->work->item->row0;
    return x->floats && row < x->work->exist ? (float *)(x->to.data + row * x->to.row) : 0;
}

/* Stores two sums, one after the other, or the first alone, to the tensors or as partial results. */
DEVICE void store_both(struct part *first, const struct part *second, u32 count,
                       struct both_stored x)
{
    NO_UNROLL
    for (u32 sum = 0; sum < count; sum++) {
        float *floats = row_partial(x.a, x.work, sum);
        if (GROUPED && !floats)
            floats = row_of_floats(&x);
        store_row(first, sum ? 1 : x.by, &x.to, floats, x.work);
        *first = *second;
        x.to = x.to_second;
    }
}

/* dS = P dP - delta P (sparsegen: over the support): two sums in one pass, combined when delta is known. In
   float that loses nothing. */
DEVICE void global_row_dq(const struct abi_args *a, const struct work_item *work)
{
    struct row_walk w;
    struct part d_q, p_k;
    struct operands o;
    struct backward b = row_backward(a);
    struct view to = view_of(&a->d_q, work);
    u32 row = work->item->row0;
    float lse = row < work->length ? scaled_lse(lse_of(a, work)[row]) : 0, sum = 0, count = 0;
    float keys = 0;
    const u32 joins = CUT_ROWS && merges_partials(work);
    row_start(&w, a, work, &a->k, &a->v);
    w.rows_are_keys = 0;
    part_clear(&d_q);
    part_clear(&p_k);
    load_operand(&o.row, &a->q, work);
    load_operand(&o.row_grad, &a->d_o, work);
    float delta = row_delta_estimate(a, work, &o.row_grad);
    if (joins)
        sum = row_merge_partial(a, work, &d_q, &p_k);
    NO_UNROLL
    while (!joins && row_step(&w)) {
        struct columns c;
        columns_load_first(&c, &w);
        columns_load_second(&c, &w);
        NO_UNROLL
        for (u32 k = 0; k < COLUMNS_AT_ONCE; k++) {
            struct entry e = row_entry(&w, &b, &o, k, lse, &c);
            sum += e.p * (e.dp - delta);
            count += e.p;
            keys += row_has(&w, k);
            part_add(&d_q, &c.first[0], e.p * (e.dp - delta));
            part_add(&p_k, &c.first[0], e.p);
            columns_next(&c);
        }
    }
    sum = block_reduce(sum, 0);
    count = TRANSFORM == ABI_SPARSEGEN ? block_reduce(count, 0) : 1;
    const u32 partial = CUT_ROWS && work->item->split;
    float by = ds_scale(a);
    float delta_correction = count > 0 ? sum / count : 0;
    UNROLL
    for (u32 k = 0; k < 8; k++)
        d_q.at[k] -= partial ? 0 : delta_correction * p_k.at[k];
    const struct both_stored stored = {a, work, to, to, partial ? 1 : by, 0};
    store_both(&d_q, &p_k, 1 + partial, stored);
    if (partial)
        row_store_partial(a, work, sum, 0);
    else if (THREAD == 0 && row < work->exist)
        delta_put(a, work, row, delta, delta_correction);
    if (ADD_BIAS && !partial && block_reduce(keys, 0) == 1 && THREAD == 0)
        *bias_delta_correction(a, delta_of(a, work) + row) = -NEGATIVE_INFINITY;
}

DEVICE void global_row_dkv(const struct abi_args *a, const struct work_item *work)
{
    struct row_walk w;
    struct part d_k, d_v;
    struct operands o;
    struct backward b = row_backward(a);
    struct view to_k = view_of(&a->d_k, work), to_v = view_of(&a->d_v, work);
    const u32 joins = CUT_ROWS && merges_partials(work);
    row_start(&w, a, work, &a->q, &a->d_o);
    w.rows_are_keys = 1;
    part_clear(&d_k);
    part_clear(&d_v);
    load_operand(&o.row, &a->k, work);
    load_operand(&o.row_grad, &a->v, work);
    if (joins)
        row_merge_partial(a, work, &d_k, &d_v);
    NO_UNROLL
    while (!joins && row_step(&w)) {
        struct columns c;
        float lse[COLUMNS_AT_ONCE], delta[COLUMNS_AT_ONCE];
        columns_load_first(&c, &w);
        columns_load_second(&c, &w);
        UNROLL
        for (u32 k = 0; k < COLUMNS_AT_ONCE; k++) {
            lse[k] = lse_of(a, work)[row_column(&w, k)];
            delta[k] = delta_of(a, work)[row_column(&w, k)];
        }
        NO_UNROLL
        for (u32 k = 0; k < COLUMNS_AT_ONCE; k++) {
            struct entry e = row_entry(&w, &b, &o, k, scaled_lse(lse[0]), &c);
            part_add(&d_k, &c.first[0], score_gradient(e.p, e.dp, delta[0]));
            part_add(&d_v, &c.second[0], e.p * e.kept);
            columns_next(&c);
            UNROLL
            for (u32 next = 1; next < COLUMNS_AT_ONCE; next++) {
                lse[next - 1] = lse[next];
                delta[next - 1] = delta[next];
            }
        }
    }
    const struct both_stored stored = {
        a, work, to_k, to_v, CUT_ROWS && work->item->split ? 1 : ds_scale(a), GROUPED};
    store_both(&d_k, &d_v, 2, stored);
}

#endif
