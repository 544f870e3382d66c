/* SPDX-License-Identifier: Apache-2.0 */
/* Sparsegen-lin: P = max(0, S - tau) / (1 - lambda), where tau makes the row sum to one.

       pass 1, column tiles:   S = Q K^T to the scratch
       tau                     by Newton's method from below; the support only shrinks
       pass 2, column tiles:   P from the scratch, O += P V, with dropout */
#ifndef MASKC_CUDA_SIMT_SPARSEGEN_H
#define MASKC_CUDA_SIMT_SPARSEGEN_H
#include "cuda/common/transform.h"
#include "cuda/simt/dropout.h"
#include "cuda/simt/pieces.h"

/* Writes the thread's entries of a column tile to the scratch. */
DEVICE void scratch_put(float *scratch, const struct slots *x, const struct column_tile *ct)
{
    UNROLL
    for (u32 k = 0; k < SLOTS; k++) {
        u32 s = slot_of(k, quad_lane());
        if (s >= ct->begin && s < ct->end)
            global_put(scratch + slot_scratch(ct, s), x->at[k]);
    }
}

/* Reads them back; -inf in slots that do not count. */
DEVICE void scratch_get(const float *scratch, struct slots *ret, const struct column_tile *ct)
{
    UNROLL
    for (u32 k = 0; k < SLOTS; k++) {
        u32 s = slot_of(k, quad_lane());
        u32 counts = s >= ct->begin && s < ct->end;
        ret->at[k] = counts ? global_get(scratch + slot_scratch(ct, s)) : NEGATIVE_INFINITY;
    }
}

/* Scores of the whole item to the scratch, -inf where a row does not see. Returns the number of score columns;
   *ret_row_max is the maximum of the thread's row. */
DEVICE u32 sparsegen_scores(const struct abi_args *a, const struct work_item *work,
                            float *scratch, float *ret_row_max)
{
    struct view k = view_of(&a->k, work);
    float *rows = shared_tile(0), *keys = shared_tile(1);
    struct walk w = walk_start(&a->forward, work);
    struct column_tile ct;
    struct slots s;
    float row_max = NEGATIVE_INFINITY;
    while (walk_next(&w, &ct)) {
        fetch(keys, &k, &ct, work);
        dots(&s, rows, keys, &ct, &k);
        UNROLL
        for (u32 at = 0; at < SLOTS; at++) {
            s.at[at] = sees(&ct, at) ? bias_score(s.at[at] * a->scale, 1, a, work, &ct, at)
                                     : NEGATIVE_INFINITY;
            row_max = larger(row_max, s.at[at]);
        }
        scratch_put(scratch, &s, &ct);
    }
    *ret_row_max = reduce_row_max(work, row_max);
    return w.stored;
}

struct support {
    float sum, count; /* of scores above a threshold, less the row maximum */
};

DEVICE struct support support_above(const struct work_item *work, const float *scratch,
                                    u32 columns, float row_max, float threshold)
{
    u32 step = work->global_row ? THREADS : QUAD * BLOCK_ROWS;
    u32 begin = work->global_row ? THREAD : quad_lane() * BLOCK_ROWS + quad();
    struct support r = {0, 0};
    NO_UNROLL
    for (u32 at = begin; at < columns * BLOCK_ROWS; at += step) {
        float z = global_get(scratch + at) - row_max;
        r.sum += z > threshold ? z : 0;
        r.count += z > threshold ? 1 : 0;
    }
    r.sum = reduce_row_sum(work, r.sum);
    r.count = reduce_row_sum(work, r.count);
    return r;
}

/* tau of the thread's row. */
DEVICE float sparsegen_tau(const struct abi_args *a, const struct work_item *work,
                           const float *scratch, u32 columns, float row_max)
{
    float total = 1 - a->lambda, threshold = -total, before = -1;
    u32 going = 1;
    while (ANY(going)) {
        struct support s = support_above(work, scratch, columns, row_max, threshold);
        going = s.count > 0 && s.count != before;
        if (going)
            threshold = larger(threshold, (s.sum - total) / s.count);
        before = s.count;
    }
    return tau_of(row_max, threshold);
}

DEVICE void forward_sparsegen(const struct abi_args *a, const struct work_item *work)
{
    struct view q = view_of(&a->q, work), v = view_of(&a->v, work);
    float *scratch = scratch_of(a), *values = shared_tile(1);
    struct sums o;
    float row_max;
    /* No barrier: the second pass of the work item before had one, after the last use of these rows. */
    load_row(shared_tile(0), &q, work->row, work->active);
    u32 columns = sparsegen_scores(a, work, scratch, &row_max);
    SYNC_WARP(); /* a quad reads what its lanes wrote; on a global row reduce_row_max had barriers */
    float tau = sparsegen_tau(a, work, scratch, columns, row_max);
    sums_clear(&o);
    const float p_scale = sparsegen_scale(a);
    struct walk w = walk_start(&a->forward, work);
    struct column_tile ct;
    struct slots p;
    while (walk_next(&w, &ct)) {
        fetch(values, &v, &ct, work);
        scratch_get(scratch, &p, &ct);
        UNROLL
        for (u32 k = 0; k < SLOTS; k++)
            p.at[k] = sees(&ct, k) ? sparsegen_p(p.at[k], tau, p_scale) : 0;
        bias_scale(&p, a, work, &ct);
        dropout(&p, a, dropout_kept(a, work, &ct, 0));
        accumulate(&o, &p, values, &ct, &v);
    }
    sums_store(&o, work, &a->o, 1);
    if (is_row_writer(work))
        a->lse[work->b * a->lse_batch + work->h * a->lse_head + work->first + work->row] = tau;
}

#endif
