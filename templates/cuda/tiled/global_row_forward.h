/* SPDX-License-Identifier: Apache-2.0 */
/* The row pass, forward: each team has a softmax of its own until the end. */
#ifndef MASKC_CUDA_TILED_GLOBAL_ROW_FORWARD_H
#define MASKC_CUDA_TILED_GLOBAL_ROW_FORWARD_H
#include "cuda/tiled/global_row.h"
#include "cuda/tiled/sparsegen.h"

typedef char row_pass_fits_forward[FORWARD_SHARED >= 4 * ROW_FLOATS ? 1 : -1];

DEVICE void row_lse(const struct row_walk *w, float lse)
{
    if (THREAD == 0 && w->job->item->row0 < w->job->exist)
        ((float *)lse_of(w->a, w->job))[w->job->item->row0] = lse;
}

/* Scores of the step, to base 2 for softmax, -inf where there is none; `second` is loaded too. */
DEVICE void row_scores(const struct row_walk *w, const struct part *q, float scale,
                       float s[DIAGONAL_ROWS], struct u32x4 *second)
{
    struct u32x4 first[DIAGONAL_ROWS];
    UNROLL
    for (u32 k = 0; k < DIAGONAL_ROWS; k++) {
        first[k] = load_part(&w->first, row_column(w, k));
        if (second)
            second[k] = load_part(&w->second, row_column(w, k));
    }
    UNROLL
    for (u32 k = 0; k < DIAGONAL_ROWS; k++) {
        float dot = part_dot(q, &first[k]);
        if (ADD_BIAS)
            dot = dot * scale + row_bias(w, k) * (TRANSFORM == ABI_SPARSEGEN ? 1 : LOG2_E);
        s[k] = row_has(w, k) ? dot * (ADD_BIAS ? 1 : scale) : NEGATIVE_INFINITY;
    }
}

DEVICE void row_softmax(struct row_walk *w, const struct part *q, struct part *o)
{
    float top = NEGATIVE_INFINITY, sum = 0;
    struct view to = view_of(&w->a->o, w->job);
    while (row_step(w)) {
        float s[DIAGONAL_ROWS], higher = top;
        struct u32x4 values[DIAGONAL_ROWS];
        row_scores(w, q, w->a->scale * LOG2_E, s, values);
        u32 kept = row_draws(w);
        UNROLL
        for (u32 k = 0; k < DIAGONAL_ROWS; k++)
            higher = larger(higher, s[k]);
        float origin = softmax_origin(higher, 1), alpha = exp2_of(top - origin);
        top = higher;
        sum *= alpha;
        part_scale(o, alpha);
        UNROLL
        for (u32 k = 0; k < DIAGONAL_ROWS; k++) {
            float p = exp2_of(s[k] - origin);
            sum += p;
            part_add(o, &values[k], p * row_factor(w, kept >> k & 1, k));
        }
    }
    float all = block_reduce(top, 1), weight = exp2_of(top - softmax_origin(all, 1));
    sum = block_reduce(sum * weight, 0);
    const u32 partial = CUT_ROWS && w->job->item->split;
    weight = partial ? weight : sum > 0 ? weight / sum : 0;
    store_row(o, weight, &to, row_left(w->a, w->job, 0), w->job);
    if (partial)
        row_leave_numbers(w->a, w->job, all, sum);
    else
        row_lse(w, sum > 0 ? (all + log2_of(sum)) * LN_2 : NEGATIVE_INFINITY);
}

/* The teams keep their scores in the scratch, and each finds its own again. */
DEVICE float row_tau(struct row_walk *w, const float *scratch, float top)
{
    float room = 1 - w->a->lambda, threshold = -room, before = -1;
    u32 going = 1;
    while (going) { /* all threads have the same numbers */
        float sum = 0, count = 0;
        row_restart(w);
        while (row_step(w)) {
            UNROLL
            for (u32 k = 0; k < DIAGONAL_ROWS; k++) {
                float z = row_has(w, k)
                              ? global_get(scratch + (w->place + row_column(w, k))) - top
                              : NEGATIVE_INFINITY;
                sum += z > threshold ? z : 0;
                count += z > threshold ? 1 : 0;
            }
        }
        sum = block_reduce(sum, 0);
        count = block_reduce(count, 0);
        going = count > 0 && count != before;
        if (going)
            threshold = larger(threshold, (sum - room) / count);
        before = count;
    }
    return top == NEGATIVE_INFINITY ? top : top + threshold;
}

DEVICE void row_sparsegen(struct row_walk *w, const struct part *q, struct part *o)
{
    float top = NEGATIVE_INFINITY, *scratch = scratch_of(w->a), s[DIAGONAL_ROWS];
    struct view to = view_of(&w->a->o, w->job);
    while (row_step(w)) {
        row_scores(w, q, w->a->scale, s, 0);
        UNROLL
        for (u32 k = 0; k < DIAGONAL_ROWS; k++) {
            top = larger(top, s[k]);
            if (row_has(w, k) && THREAD % TEAM == 0)
                global_put(scratch + (w->place + row_column(w, k)), s[k]);
        }
    }
    float slope = sparsegen_slope(w->a);
    top = block_reduce(top, 1); /* has barriers: a team reads what its first lane wrote */
    float tau = row_tau(w, scratch, top);
    row_restart(w);
    while (row_step(w)) {
        u32 kept = row_draws(w);
        UNROLL
        for (u32 k = 0; k < DIAGONAL_ROWS; k++) {
            struct u32x4 value = load_part(&w->second, row_column(w, k));
            float score = row_has(w, k) ? global_get(scratch + (w->place + row_column(w, k)))
                                        : NEGATIVE_INFINITY;
            part_add(o, &value,
                     sparsegen_weight(score, tau, slope) * row_factor(w, kept >> k & 1, k));
        }
    }
    store_row(o, 1, &to, 0, w->job);
    row_lse(w, tau);
}

/* The softmax of all parts, in order. */
DEVICE void row_join(const struct row_walk *w)
{
    const struct job *j = w->job;
    const float *partial_slots = job_partial_slot(w->a, j);
    const u32 end = j->item->partial_slots * PARTIAL_FLOATS;
    struct view to = view_of(&w->a->o, j);
    float top = NEGATIVE_INFINITY, sum = 0;
    NO_UNROLL
    for (u32 at = 0; at < end; at += PARTIAL_FLOATS)
        top = larger(top, partial_slots[at + PARTIAL_NUMBERS]);
    float origin = softmax_origin(top, 1);
    NO_UNROLL
    for (u32 d = 2 * THREAD; d < HEAD_DIM; d += 2 * THREADS) {
        float low = 0, high = 0;
        sum = 0;
        NO_UNROLL
        for (u32 at = 0; at < end; at += PARTIAL_FLOATS) {
            struct f2 number = get_two(partial_slots + at + PARTIAL_NUMBERS);
            struct f2 x = get_two(partial_slots + at + d);
            float weight = exp2_of(number.x - origin);
            sum += weight * number.y;
            low += weight * x.x;
            high += weight * x.y;
        }
        float by = sum > 0 ? 1 / sum : 0;
        put_pair(&to, j, d, low * by, high * by);
    }
    row_lse(w, sum > 0 ? (top + log2_of(sum)) * LN_2 : NEGATIVE_INFINITY);
}

DEVICE void row_forward(const struct abi_args *a, const struct job *j)
{
    struct row_walk w;
    struct part q, o;
    row_start(&w, a, j, &a->k, &a->v);
    if (CUT_ROWS && job_joins(j)) {
        row_join(&w);
        return;
    }
    w.rows_are_keys = 0;
    part_clear(&o);
    load_operand(&q, &a->q, j);
    if (TRANSFORM == ABI_SPARSEGEN)
        row_sparsegen(&w, &q, &o);
    else
        row_softmax(&w, &q, &o);
}

#endif
