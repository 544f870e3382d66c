/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass: dQ over the forward plan, then dK and dV over the transposed one. Both
   recompute P from the row's LSE (or tau). For softmax dS = P (dP - delta), where delta is the
   sum of P dP, which is dO . O; for sparsegen dS = (dP - mean of dP over the support) / (1 -
   lambda) on the support. dQ leaves delta, or the mean, in args.delta for dK. */
#ifndef MASKC_CUDA_SIMT_BACKWARD_H
#define MASKC_CUDA_SIMT_BACKWARD_H
#include "cuda/simt/sparsegen.h"

/* `slope` is of sparsegen. A bias may be -inf, and be that for a whole row. */
DEVICE float probability(float score, float lse, float slope)
{
    if (TRANSFORM == ABI_SPARSEGEN)
        return sparsegen_weight(score, lse, slope);
    if (ADD_BIAS && lse == NEGATIVE_INFINITY)
        return 0;
    return exp2_of((score - lse) * LOG2_E);
}

/* What dP counts for in a query's slopes: P, for sparsegen 1 on the support. */
DEVICE float query_weight(float score, float lse)
{
    if (TRANSFORM == ABI_SPARSEGEN)
        return score > lse ? 1 : 0;
    return probability(score, lse, 0);
}

DEVICE const float *lse_of(const struct abi_args *a, const struct job *j)
{
    return a->lse + j->b * a->lse_batch + j->h * a->lse_head + j->first;
}

DEVICE float *state_of(const struct abi_args *a, const struct job *j)
{
    return a->delta + ((u64)j->b * a->heads + j->h) * a->delta_rows;
}

/* dO . O of the thread's row. */
DEVICE float row_delta(const struct abi_args *a, const struct job *j)
{
    struct view o = view_of(&a->o, j), d_o = view_of(&a->d_o, j);
    float sum = 0;
    UNROLL
    for (u32 k = 0; k < CHUNKS; k++) {
        u32 d = chunk_of(k);
        if (j->active && d < HEAD_DIM)
            sum = dot4(sum, load4(&o, j->row, d), load4(&d_o, j->row, d));
    }
    return quad_sum(sum);
}

/* Products of the job's rows with the group's columns of `a`, then of `b`, which are left in tile 2. Tile `last`
   has the rows that are multiplied by b, and of tiles 0 and 1 the other has a's. Both operands take turns with
   one text: what stands twice takes twice as long to compile. */
DEVICE void both_dots(struct slots *by_a, struct slots *by_b, const struct abi_tensor *a,
                      const struct abi_tensor *b, u32 last, const struct group *g,
                      const struct job *j)
{
    slots_clear(by_b);
    NO_UNROLL
    for (u32 turn = 0; turn < 2; turn++) {
        struct view v = view_again(turn ? b : a, j);
        *by_a = *by_b;
        fetch(shared_tile(2), &v, g, j);
        dots(by_b, shared_tile(turn ? last : 1 - last), shared_tile(2), g, &v);
    }
}

/* P and dP of a group, rows being queries: tile 0 holds Q, tile 1 dO. Leaves K in tile 2. */
DEVICE void query_group(const struct abi_args *a, const struct job *j, const struct group *g,
                        float lse, struct slots *p, struct slots *dp)
{
    both_dots(dp, p, &a->v, &a->k, 0, g, j);
    dropout(dp, a, dropout_kept(a, j, g, 0));
    bias_scale(dp, a, j, g);
    UNROLL_BY(SLOTS_ABREAST)
    for (u32 at = 0; at < SLOTS; at++, slots_turn(p)) {
        float score = p->at[0] * a->scale;
        p->at[0] = sees(g, at) ? query_weight(bias_score(score, 1, a, j, g, at, 0), lse) : 0;
    }
}

/* The mean of dP over the row's support, by a walk of its own: dP goes to the scratch, -inf outside the
   support. */
DEVICE float support_mean(const struct abi_args *a, const struct job *j, float lse)
{
    struct walk w = walk_start(&a->forward, j);
    struct group g;
    struct slots p, dp;
    float sum = 0, count = 0;
    while (walk_next(&w, &g)) {
        query_group(a, j, &g, lse, &p, &dp);
        UNROLL
        for (u32 k = 0; k < SLOTS; k++) {
            u32 supports = p.at[k] > 0;
            sum += supports ? dp.at[k] : 0;
            count += supports ? 1 : 0;
            dp.at[k] = supports ? dp.at[k] : NEGATIVE_INFINITY;
        }
        scratch_put(scratch_of_block(a), &dp, &g);
    }
    sum = row_sum(j, sum);
    count = row_sum(j, count);
    return count > 0 ? sum / count : 0;
}

/* Weights and dP as that walk left them; K comes to tile 2. */
DEVICE void query_again(const struct abi_args *a, const struct job *j, const struct group *g,
                        struct slots *p, struct slots *dp)
{
    struct view k = view_of(&a->k, j);
    fetch(shared_tile(2), &k, g, j);
    scratch_get(scratch_of_block(a), dp, g);
    UNROLL
    for (u32 at = 0; at < SLOTS; at++)
        p->at[at] = dp->at[at] > NEGATIVE_INFINITY ? 1 : 0;
}

/* An O that is a sum of rounded products is too far off for dO . O: then the sum of P dP takes a walk,
   which has the text of the other. */
enum { DELTA_WALK = TRANSFORM == ABI_SOFTMAX && DTYPE != ABI_F32 };

/* delta, or the mean; not known yet with DELTA_WALK. */
DEVICE float row_state(const struct abi_args *a, const struct job *j, float lse)
{
    if (TRANSFORM == ABI_SPARSEGEN)
        return support_mean(a, j, lse);
    return DELTA_WALK ? 0 : row_delta(a, j);
}

/* For the keys' gradients: the state of a row that sees `keys`, and what a bias is told of it (bias.h). */
DEVICE void put_state(const struct abi_args *a, const struct job *j, float state, float keys)
{
    if (ADD_BIAS && j->single)
        keys = block_reduce(keys, 0);
    if (!job_speaks(j))
        return;
    float *to = state_of(a, j) + j->row;
    *to = state;
    if (ADD_BIAS)
        *bias_rest(a, to) = keys == 1 ? -NEGATIVE_INFINITY : 0;
}

DEVICE void gradient_of_queries(const struct abi_args *a, const struct job *j)
{
    struct view q = view_of(&a->q, j), d_o = view_of(&a->d_o, j), k = view_of(&a->k, j);
    SYNC();
    load_own_rows(&q, &d_o, j);
    float lse = j->active ? lse_of(a, j)[j->row] : 0, sum = 0, keys = 0;
    float state = row_state(a, j, lse);
    struct sums d_q;
    sums_clear(&d_q);
    NO_UNROLL
    for (u32 walk = DELTA_WALK ? 0 : 1; walk < 2; walk++) {
        struct walk w = walk_start(&a->forward, j);
        struct group g;
        struct slots p, ds;
        while (walk_next(&w, &g)) {
            if (TRANSFORM == ABI_SPARSEGEN)
                query_again(a, j, &g, &p, &ds);
            else
                query_group(a, j, &g, lse, &p, &ds);
            UNROLL
            for (u32 at = 0; at < SLOTS; at++) {
                sum += walk ? 0 : p.at[at] * ds.at[at];
                ds.at[at] = score_gradient(p.at[at], ds.at[at], state);
            }
            if (walk)
                accumulate(&d_q, &ds, shared_tile(2), &g, &k);
            for (u32 bits = ADD_BIAS && walk ? g.bits : 0; bits; bits &= bits - 1)
                keys += 1;
        }
        state = walk ? state : row_sum(j, sum);
    }
    sums_store(&d_q, j, &a->d_q, slope_scale(a));
    put_state(a, j, state, keys);
}

/* Draws are made before the products, where a bit for each entry can wait beside the sums. */
enum { DRAWS_FIRST = CHUNKS <= 8 };

/* Of place k of a group, rows being keys: its query and what X has of it. */
struct key_place {
    u32 i;
    float bias;
};

DEVICE struct key_place key_place(const struct abi_args *a, const struct job *j,
                                  const struct group *g, u32 k)
{
    struct key_place at;
    at.i = sees(g, k) ? group_column(g, slot_of(k, lane())) : 0;
    at.bias = BIAS && sees(g, k) ? a->bias[bias_at(a, j->h, at.i, j->row)] : 0;
    return at;
}

/* A product to P. */
DEVICE void key_weight(const struct abi_args *a, const struct job *j, const struct group *g,
                       u32 k, const struct key_place *at, float slope, float *p)
{
    float score = ADD_BIAS ? *p * a->scale + at->bias : *p * a->scale;
    *p = sees(g, k) ? probability(score, lse_of(a, j)[at->i], slope) : 0;
}

/* P to the weight of dO, dP to dS: both have the factor of dropout and of a bias. */
DEVICE void key_slope(const struct abi_args *a, const struct job *j, const struct group *g,
                      u32 k, const struct key_place *at, u32 kept, float *p, float *dp)
{
    float factor = dropout_factor(a, kept >> k & 1) * (SCALE_PROBS ? at->bias : 1);
    float slope = score_gradient(*p, *dp * factor, state_of(a, j)[at->i]);
    *dp = sees(g, k) ? slope : 0;
    *p *= factor;
}

/* Place by place, since what finds a query is much text; or where heads are wide, and draws come only now, all
   weights first. */
DEVICE void key_slots(const struct abi_args *a, const struct job *j, const struct group *g,
                      u32 kept, struct slots *p, struct slots *dp)
{
    const float slope = sparsegen_slope(a);
    UNROLL_BY(SLOTS_ABREAST)
    for (u32 k = 0; k < SLOTS; k++, slots_turn(p)) {
        const struct key_place at = key_place(a, j, g, k);
        key_weight(a, j, g, k, &at, slope, &p->at[0]);
        if (DRAWS_FIRST) {
            key_slope(a, j, g, k, &at, kept, &p->at[0], &dp->at[0]);
            slots_turn(dp);
        }
    }
    if (DRAWS_FIRST)
        return;
    kept = dropout_kept(a, j, g, 1);
    UNROLL_BY(SLOTS_ABREAST)
    for (u32 k = 0; k < SLOTS; k++, slots_turn(p), slots_turn(dp)) {
        const struct key_place at = key_place(a, j, g, k);
        key_slope(a, j, g, k, &at, kept, &p->at[0], &dp->at[0]);
    }
}

/* To the tensors. A loop, but two wide sums leave it no registers. */
DEVICE void store_key_sums(struct sums *d_k, struct sums *d_v, const struct abi_args *a,
                           const struct job *j)
{
    if (CHUNKS > 8) {
        sums_store(d_k, j, &a->d_k, slope_scale(a));
        sums_store(d_v, j, &a->d_v, 1);
        return;
    }
    NO_UNROLL
    for (u32 second = 0; second < 2; second++) { /* no index picks a register */
        sums_store(d_k, j, second ? &a->d_v : &a->d_k, second ? 1 : slope_scale(a));
        *d_k = *d_v;
    }
}

DEVICE void gradient_of_keys(const struct abi_args *a, const struct job *j)
{
    struct view key = view_of(&a->k, j), value = view_of(&a->v, j);
    struct sums d_k, d_v;
    sums_clear(&d_k);
    sums_clear(&d_v);
    /* No barrier: the job before had one (the last fetch) after the last use of these rows. */
    load_own_rows(&key, &value, j);
    struct walk w = walk_start(&a->transposed, j);
    struct group g;
    struct slots p, dp;
    while (walk_next(&w, &g)) {
        u32 kept = DRAWS_FIRST ? dropout_kept(a, j, &g, 1) : 0;
        both_dots(&p, &dp, &a->q, &a->d_o, 1, &g, j);
        key_slots(a, j, &g, kept, &p, &dp);
        NO_UNROLL
        for (u32 turn = 0; turn < 2; turn++) {
            struct view v = view_again(turn ? &a->q : &a->d_o, j);
            struct sums sum = d_v;
            if (turn)
                fetch(shared_tile(2), &v, &g, j);
            accumulate(&sum, &p, shared_tile(2), &g, &v);
            d_v = d_k;
            d_k = sum;
            p = dp;
        }
    }
    store_key_sums(&d_k, &d_v, a, j);
}

#endif
