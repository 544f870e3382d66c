/* SPDX-License-Identifier: Apache-2.0 */
/* Sparsegen-lin: P = max(0, S - tau) / (1 - lambda), where tau makes the row sum to one. All
   scores of an item go to the scratch, then Newton's method finds tau (from below; the set
   above it only shrinks), then a second walk adds up the values. */
#ifndef MASKC_CUDA_SIMT_SPARSEGEN_H
#define MASKC_CUDA_SIMT_SPARSEGEN_H
#include "cuda/common/transform.h"
#include "cuda/simt/dropout.h"
#include "cuda/simt/pieces.h"

/* Keeps what the thread holds for its slots. */
DEVICE void scratch_put(float *scratch, const struct slots *x, const struct group *g)
{
    UNROLL
    for (u32 k = 0; k < SLOTS; k++) {
        u32 s = slot_of(k, quad_lane());
        if (s >= g->begin && s < g->end)
            global_put(scratch + group_scratch(g, s), x->at[k]);
    }
}

/* What scratch_put kept; -inf in slots that do not count. */
DEVICE void scratch_get(const float *scratch, struct slots *ret, const struct group *g)
{
    UNROLL
    for (u32 k = 0; k < SLOTS; k++) {
        u32 s = slot_of(k, quad_lane());
        u32 counts = s >= g->begin && s < g->end;
        ret->at[k] = counts ? global_get(scratch + group_scratch(g, s)) : NEGATIVE_INFINITY;
    }
}

/* Scores of the whole item to the scratch, -inf where a row does not see. Returns the score
   columns that were taken; *ret_top is the maximum of the thread's row. */
DEVICE u32 sparsegen_scores(const struct abi_args *a, const struct job *j, float *scratch,
                            float *ret_top)
{
    struct view k = view_of(&a->k, j);
    float *rows = shared_tile(0), *keys = shared_tile(1);
    struct walk w = walk_start(&a->forward, j);
    struct group g;
    struct slots s;
    float top = NEGATIVE_INFINITY;
    while (walk_next(&w, &g)) {
        fetch(keys, &k, &g, j);
        dots(&s, rows, keys, &g, &k);
        UNROLL
        for (u32 at = 0; at < SLOTS; at++) {
            s.at[at] = sees(&g, at) ? bias_score(s.at[at] * a->scale, 1, a, j, &g, at, 0)
                                    : NEGATIVE_INFINITY;
            top = larger(top, s.at[at]);
        }
        scratch_put(scratch, &s, &g);
    }
    *ret_top = row_max(j, top);
    return w.stored;
}

struct support {
    float sum, count; /* of the scores above a threshold, counted from the maximum */
};

DEVICE struct support support_above(const struct job *j, const float *scratch, u32 columns,
                                    float top, float threshold)
{
    u32 step = j->single ? THREADS : QUAD * BLOCK_ROWS;
    u32 begin = j->single ? THREAD : quad_lane() * BLOCK_ROWS + quad();
    struct support r = {0, 0};
    NO_UNROLL
    for (u32 at = begin; at < columns * BLOCK_ROWS; at += step) {
        float z = global_get(scratch + at) - top;
        r.sum += z > threshold ? z : 0;
        r.count += z > threshold ? 1 : 0;
    }
    r.sum = row_sum(j, r.sum);
    r.count = row_sum(j, r.count);
    return r;
}

/* tau of the thread's row; -inf where it sees nothing. */
DEVICE float sparsegen_tau(const struct abi_args *a, const struct job *j, const float *scratch,
                           u32 columns, float top)
{
    float room = 1 - a->lambda, threshold = -room, before = -1;
    u32 going = 1;
    while (ANY(going)) {
        struct support s = support_above(j, scratch, columns, top, threshold);
        going = s.count > 0 && s.count != before;
        if (going)
            threshold = larger(threshold, (s.sum - room) / s.count);
        before = s.count;
    }
    return top == NEGATIVE_INFINITY ? top : top + threshold;
}

DEVICE void forward_sparsegen(const struct abi_args *a, const struct job *j)
{
    struct view q = view_of(&a->q, j), v = view_of(&a->v, j);
    float *scratch = scratch_of(a), *values = shared_tile(1);
    struct sums o;
    float top;
    /* No barrier: the job before had one (its second walk) after the last use of these rows. */
    load_row(shared_tile(0), &q, j->row, j->active);
    u32 columns = sparsegen_scores(a, j, scratch, &top);
    SYNC_WARP(); /* a quad reads what its lanes wrote; the row pass had barriers in row_max */
    float tau = sparsegen_tau(a, j, scratch, columns, top);
    sums_clear(&o);
    const float slope = sparsegen_slope(a);
    struct walk w = walk_start(&a->forward, j);
    struct group g;
    struct slots p;
    while (walk_next(&w, &g)) {
        fetch(values, &v, &g, j);
        scratch_get(scratch, &p, &g);
        UNROLL
        for (u32 k = 0; k < SLOTS; k++)
            p.at[k] = sees(&g, k) ? sparsegen_weight(p.at[k], tau, slope) : 0;
        bias_scale(&p, a, j, &g);
        dropout(&p, a, dropout_kept(a, j, &g, 0));
        accumulate(&o, &p, values, &g, &v);
    }
    sums_store(&o, j, &a->o, 1);
    if (job_speaks(j))
        a->lse[j->b * a->lse_batch + j->h * a->lse_head + j->first + j->row] = tau;
}

#endif
