/* SPDX-License-Identifier: Apache-2.0 */
/* The SIMT family: dQ. */
#include "cuda/simt/backward.h"
#include "cuda/simt/sparsegen.h"

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
        scratch_put(scratch_of(a), &dp, &g);
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
    scratch_get(scratch_of(a), dp, g);
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

ENTRY(attention_dq)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < job_count(&a, &a.forward); at += BLOCKS) {
        struct job j = job_at(&a, &a.forward, at);
        gradient_of_queries(&a, &j);
    }
}
