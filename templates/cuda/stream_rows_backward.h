/* SPDX-License-Identifier: Apache-2.0 */
/* The row pass, backward: one query's dQ, or one key's dK and dV. */
#ifndef MASKC_CUDA_STREAM_ROWS_BACKWARD_H
#define MASKC_CUDA_STREAM_ROWS_BACKWARD_H
#include "cuda/stream_backward.h"
#include "cuda/stream_rows.h"

typedef char row_pass_fits_backward[BACKWARD_SHARED >= 4 * ROW_FLOATS ? 1 : -1];

/* The scale of scores, as struct backward has it. */
DEVICE struct backward row_backward(const struct abi_args *a)
{
    struct backward b;
    b.a = a;
    backward_units(&b, a);
    return b;
}

/* Entry k of a step: P, and dP after dropout. */
struct entry {
    float p, dp, kept;
};

DEVICE struct entry row_entry(const struct row_walk *w, const struct backward *b, u32 kept,
                              u32 k, float lse, const struct u32x4 *first,
                              const struct u32x4 *second)
{
    struct entry e;
    float dot = part_dot(SHARED(), first), grad = part_dot(SHARED() + ROW_PITCH, second);
    if (BIAS)
        dot = dot * b->scale + row_soft(w, k) * (TRANSFORM == ABI_SPARSEGEN ? 1 : LOG2_E);
    e.kept = row_kept(w, kept, k);
    e.p = w->there[k] ? probability(b, dot, lse) : 0;
    e.dp = grad * e.kept;
    return e;
}

DEVICE void row_load(const struct row_walk *w, struct u32x4 *first, struct u32x4 *second)
{
    UNROLL
    for (u32 k = 0; k < ABREAST; k++) {
        first[k] = load_part(&w->first, w->at[k], w->there[k]);
        second[k] = load_part(&w->second, w->at[k], w->there[k]);
    }
}

DEVICE void load_operands(const struct abi_args *a, const struct job *j,
                          const struct abi_tensor *row, const struct abi_tensor *row_grad)
{
    struct view first = view_of(row, j), second = view_of(row_grad, j);
    SYNC();
    load_operand(SHARED(), &first, j);
    load_operand(SHARED() + ROW_PITCH, &second, j);
    SYNC();
}

/* dO . O, as O was rounded, in all teams; what is added up is counted from there, so that it is small. */
DEVICE float row_origin(const struct abi_args *a, const struct job *j)
{
    struct view o = view_of(&a->o, j);
    struct u32x4 x = load_part(&o, j->item->row0, j->item->row0 < j->length);
    return BIAS ? part_dot(SHARED() + ROW_PITCH, &x) : 0;
}

/* dS is P dP - delta P, or the same over the support: two sums in one walk, put together when delta
   is known. In float nothing is lost by that. */
DEVICE void row_query_gradient(const struct abi_args *a, const struct job *j)
{
    struct row_walk w;
    struct part slope, plain;
    struct backward b = row_backward(a);
    struct view to = view_of(&a->d_q, j);
    u32 row = j->item->row0;
    float lse = row < j->length ? lse_in_units(lse_of(a, j)[row]) : 0, sum = 0, count = 0;
    float keys = 0;
    row_start(&w, a, j, &a->k, &a->v);
    w.rows_are_keys = 0;
    part_clear(&slope);
    part_clear(&plain);
    load_operands(a, j, &a->q, &a->d_o);
    float origin = row_origin(a, j);
    while (row_step(&w)) {
        struct u32x4 first[ABREAST], second[ABREAST];
        row_load(&w, first, second);
        u32 kept = row_draws(&w);
        UNROLL
        for (u32 k = 0; k < ABREAST; k++) {
            struct entry e = row_entry(&w, &b, kept, k, lse, &first[k], &second[k]);
            float weight = TRANSFORM == ABI_SPARSEGEN ? e.p > 0 : e.p;
            sum += weight * (e.dp - origin);
            count += weight;
            keys += w.there[k];
            part_add(&slope, &first[k], weight * (e.dp - origin));
            part_add(&plain, &first[k], weight);
        }
    }
    sum = block_reduce(sum, 0);
    count = TRANSFORM == ABI_SPARSEGEN ? block_reduce(count, 0) : 1;
    float state = count > 0 ? sum / count : 0;
    UNROLL
    for (u32 k = 0; k < 8; k++)
        slope.at[k] -= state * plain.at[k];
    store_row(&slope, TRANSFORM == ABI_SPARSEGEN ? a->scale / (1 - a->lambda) : a->scale, &to,
              j);
    if (THREAD == 0 && row < j->exist)
        state_put(a, j, row, origin, state);
    if (BIAS && block_reduce(keys, 0) == 1 && THREAD == 0)
        *soft_rest(a, state_of(a, j) + row) = -NEGATIVE_INFINITY;
}

DEVICE void row_key_gradients(const struct abi_args *a, const struct job *j)
{
    struct row_walk w;
    struct part d_k, d_v;
    struct backward b = row_backward(a);
    struct view to_k = view_of(&a->d_k, j), to_v = view_of(&a->d_v, j);
    row_start(&w, a, j, &a->q, &a->d_o);
    w.rows_are_keys = 1;
    part_clear(&d_k);
    part_clear(&d_v);
    load_operands(a, j, &a->k, &a->v);
    while (row_step(&w)) {
        struct u32x4 first[ABREAST], second[ABREAST];
        row_load(&w, first, second);
        u32 kept = row_draws(&w);
        UNROLL
        for (u32 k = 0; k < ABREAST; k++) {
            float lse = w.there[k] ? lse_in_units(lse_of(a, j)[w.at[k]]) : 0;
            float state = w.there[k] ? state_of(a, j)[w.at[k]] : 0;
            struct entry e = row_entry(&w, &b, kept, k, lse, &first[k], &second[k]);
            part_add(&d_k, &first[k], score_gradient(a, e.p, e.dp, state));
            part_add(&d_v, &second[k], e.p * e.kept);
        }
    }
    store_row(&d_k, a->scale, &to_k, j);
    store_row(&d_v, 1, &to_v, j);
}

#endif
