/* SPDX-License-Identifier: Apache-2.0 */
/* Global rows, forward. Each lane group has its own online softmax until the end:

       for each step of COLUMNS_AT_ONCE columns:
           row_scores                s = q K^T + bias
           columns_load_first        K of the next step
           m' = max(m, s), alpha = 2^(m - m'), p = 2^(s - m'), l = alpha l + sum p, o = alpha o + p V
           columns_load_second       V of the next step
       block_reduce, store_row       o / l, LSE = m + log l; a split item stores o, m, l for row_merge_slots */
#ifndef MASKC_CUDA_TILED_GLOBAL_ROW_FORWARD_H
#define MASKC_CUDA_TILED_GLOBAL_ROW_FORWARD_H
#include "cuda/tiled/global_row.h"
#include "cuda/tiled/sparsegen.h"

typedef char row_pass_fits_forward[FORWARD_SHARED >= 4 * ROW_FLOATS ? 1 : -1];

DEVICE void row_lse(const struct row_walk *w, float lse)
{
    if (THREAD == 0 && w->work->item->row0 < w->work->exist)
        ((float *)lse_of(w->a, w->work))[w->work->item->row0] = lse;
}

/* Scores of the step, to base 2 for softmax, -inf beyond the range. */
DEVICE void row_scores(const struct row_walk *w, const struct part *q, float scale,
                       float s[COLUMNS_AT_ONCE], const struct columns *c)
{
    UNROLL
    for (u32 k = 0; k < COLUMNS_AT_ONCE; k++) {
        float dot = part_dot(q, &c->first[k]);
        if (ADD_BIAS)
            dot = dot * scale + row_bias(w, k) * (TRANSFORM == ABI_SPARSEGEN ? 1 : LOG2_E);
        s[k] = row_has(w, k) ? dot * (ADD_BIAS ? 1 : scale) : NEGATIVE_INFINITY;
    }
}

/* Columns of the next step are loaded into the same registers as soon as this step has read them for the last time, and arrive
   under the rest of its arithmetic. Behind the last step that is done in vain: the last columns come once more. */
DEVICE void row_softmax(struct row_walk *w, const struct part *q, struct part *o)
{
    float row_max = NEGATIVE_INFINITY, sum = 0;
    struct view to = view_of(&w->a->o, w->work);
    struct columns c;
    u32 more = columns_start(&c, w);
    NO_UNROLL
    while (more) {
        float s[COLUMNS_AT_ONCE], new_max = row_max;
        const struct row_walk now = *w;
        row_scores(&now, q, w->a->scale * LOG2_E, s, &c);
        more = row_step(w);
        columns_load_first(&c, w);
        u32 kept = row_draws(&now);
        UNROLL
        for (u32 k = 0; k < COLUMNS_AT_ONCE; k++)
            new_max = larger(new_max, s[k]);
        float shift = finite_max(new_max, 1), alpha = exp2_of(row_max - shift);
        row_max = new_max;
        sum *= alpha;
        part_scale(o, alpha);
        UNROLL
        for (u32 k = 0; k < COLUMNS_AT_ONCE; k++) {
            float p = exp2_of(s[k] - shift);
            sum += p;
            part_add(o, &c.second[k], p * row_factor(&now, kept >> k & 1, k));
        }
        columns_load_second(&c, w);
    }
    float block_max = block_reduce(row_max, 1),
          alpha = exp2_of(row_max - finite_max(block_max, 1));
    sum = block_reduce(sum * alpha, 0);
    const u32 partial = CUT_ROWS && w->work->item->split;
    alpha = partial ? alpha : saw_nothing(sum) ? 0 : alpha / sum;
    store_row(o, alpha, &to, row_partial(w->a, w->work, 0), w->work);
    if (partial)
        row_store_partial(w->a, w->work, block_max, sum);
    else
        row_lse(w, saw_nothing(sum) ? NEGATIVE_INFINITY : (block_max + log2_of(sum)) * LN_2);
}

/* Newton's method. Lane groups find their own scores in the scratch. */
DEVICE float row_tau(struct row_walk *w, const float *scratch, float row_max)
{
    float total = 1 - w->a->lambda, threshold = -total, before = -1;
    u32 going = 1;
    while (going) { /* all threads have the same numbers */
        float sum = 0, count = 0;
        row_restart(w);
        while (row_step(w)) {
            UNROLL
            for (u32 k = 0; k < COLUMNS_AT_ONCE; k++) {
                float z = row_has(w, k)
                              ? global_get(scratch + (w->place + row_column(w, k))) - row_max
                              : NEGATIVE_INFINITY;
                sum += z > threshold ? z : 0;
                count += z > threshold ? 1 : 0;
            }
        }
        sum = block_reduce(sum, 0);
        count = block_reduce(count, 0);
        going = count > 0 && count != before;
        if (going)
            threshold = larger(threshold, (sum - total) / count);
        before = count;
    }
    return tau_of(row_max, threshold);
}

DEVICE void row_sparsegen(struct row_walk *w, const struct part *q, struct part *o)
{
    float row_max = NEGATIVE_INFINITY, *scratch = scratch_of(w->a), s[COLUMNS_AT_ONCE];
    struct view to = view_of(&w->a->o, w->work);
    while (row_step(w)) {
        struct columns c;
        columns_load_first(&c, w);
        row_scores(w, q, w->a->scale, s, &c);
        UNROLL
        for (u32 k = 0; k < COLUMNS_AT_ONCE; k++) {
            row_max = larger(row_max, s[k]);
            if (row_has(w, k) && THREAD % LANE_GROUP == 0)
                global_put(scratch + (w->place + row_column(w, k)), s[k]);
        }
    }
    float p_scale = sparsegen_scale(w->a);
    row_max = block_reduce(row_max,
                           1); /* has barriers: a lane group reads what its first lane wrote */
    float tau = row_tau(w, scratch, row_max);
    row_restart(w);
    while (row_step(w)) {
        u32 kept = row_draws(w);
        UNROLL
        for (u32 k = 0; k < COLUMNS_AT_ONCE; k++) {
            struct u32x4 value = load_part(&w->second, row_column(w, k));
            float score = row_has(w, k) ? global_get(scratch + (w->place + row_column(w, k)))
                                        : NEGATIVE_INFINITY;
            part_add(o, &value,
                     sparsegen_p(score, tau, p_scale) * row_factor(w, kept >> k & 1, k));
        }
    }
    store_row(o, 1, &to, 0, w->work);
    row_lse(w, tau);
}

/* Partial slots that are read at once. */
enum { SLOTS_AT_ONCE = 4 };

/* Floats from a row's first partial slot to its slot s, or to the last one. */
DEVICE u32 row_slot(const struct row_walk *w, u32 s)
{
    return smaller(s, w->work->item->partial_slots - 1) * PARTIAL_FLOATS;
}

/* The largest maximum of all partial slots. */
DEVICE float row_slots_max(const struct row_walk *w, const float *slots)
{
    float row_max = NEGATIVE_INFINITY;
    NO_UNROLL
    for (u32 s = 0; s < w->work->item->partial_slots; s += SLOTS_AT_ONCE) {
        float each[SLOTS_AT_ONCE];
        UNROLL
        for (u32 k = 0; k < SLOTS_AT_ONCE; k++)
            each[k] = slots[row_slot(w, s + k) + PARTIAL_NUMBERS];
        UNROLL
        for (u32 k = 0; k < SLOTS_AT_ONCE; k++)
            row_max = larger(row_max, each[k]);
    }
    return row_max;
}

/* Sums of P V at d, d + 1, and of P. */
struct row_merged {
    float low, high, sum;
};

/* Adds partial slots s .. in order. */
DEVICE void row_slots_add(struct row_merged *to, const struct row_walk *w, const float *slots,
                          u32 s, u32 d, float shift)
{
    struct f2 number[SLOTS_AT_ONCE], x[SLOTS_AT_ONCE];
    UNROLL
    for (u32 k = 0; k < SLOTS_AT_ONCE; k++) {
        number[k] = get_two(slots + row_slot(w, s + k) + PARTIAL_NUMBERS);
        x[k] = get_two(slots + row_slot(w, s + k) + d);
    }
    UNROLL
    for (u32 k = 0; k < SLOTS_AT_ONCE; k++) {
        if (s + k >= w->work->item->partial_slots)
            break;
        const float alpha = exp2_of(number[k].x - shift);
        to->sum += alpha * number[k].y;
        to->low += alpha * x[k].x;
        to->high += alpha * x[k].y;
    }
}

/* The softmax of all partial results of a split row, in order. */
DEVICE void row_merge_slots(const struct row_walk *w)
{
    const struct work_item *work = w->work;
    const float *slots = partial_slot_of(w->a, work);
    struct view to = view_of(&w->a->o, work);
    const float row_max = row_slots_max(w, slots), shift = finite_max(row_max, 1);
    float sum = 0;
    NO_UNROLL
    for (u32 d = 2 * THREAD; d < HEAD_DIM; d += 2 * THREADS) {
        struct row_merged all = {0, 0, 0};
        NO_UNROLL
        for (u32 s = 0; s < work->item->partial_slots; s += SLOTS_AT_ONCE)
            row_slots_add(&all, w, slots, s, d, shift);
        sum = all.sum;
        float by = saw_nothing(sum) ? 0 : 1 / sum;
        put_pair(&to, work, d, all.low * by, all.high * by);
    }
    row_lse(w, saw_nothing(sum) ? NEGATIVE_INFINITY : (row_max + log2_of(sum)) * LN_2);
}

DEVICE void global_row_forward(const struct abi_args *a, const struct work_item *work)
{
    struct row_walk w;
    struct part q, o;
    row_start(&w, a, work, &a->k, &a->v);
    if (CUT_ROWS && merges_partials(work)) {
        row_merge_slots(&w);
        return;
    }
    w.rows_are_keys = 0;
    part_clear(&o);
    load_operand(&q, &a->q, work);
    if (TRANSFORM == ABI_SPARSEGEN)
        row_sparsegen(&w, &q, &o);
    else
        row_softmax(&w, &q, &o);
}

#endif
