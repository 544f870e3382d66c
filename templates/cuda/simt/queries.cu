/* SPDX-License-Identifier: Apache-2.0 */
/* SIMT family: dQ of a row block of queries, over the forward plan.

       load_own_rows                 Q and dO to tiles 0 and 1; LSE; delta, where it is known before (known_delta)
       for each column tile of keys (pass 0, tf32 only: the same, for delta alone):
           query_p_dp                S = Q K^T, P = exp(S - LSE), dP = dO V^T with dropout
           score_gradient            dS = P (dP - delta)
           accumulate                dQ += dS K
       sums_store, put_delta */
#include "cuda/simt/backward.h"
#include "cuda/simt/sparsegen.h"

/* P and dP of a column tile: shared tile 0 holds Q, tile 1 dO. Leaves K in tile 2. */
DEVICE void query_p_dp(const struct abi_args *a, const struct work_item *work,
                       const struct column_tile *ct, float lse, struct slots *p,
                       struct slots *dp)
{
    const struct both_slots both = {dp, p};
    both_dots(both, &a->v, &a->k, 0, ct, work);
    dropout(dp, a, dropout_kept(a, work, ct, 0));
    bias_scale(dp, a, work, ct);
    UNROLL_BY(SLOTS_UNROLLED)
    for (u32 at = 0; at < SLOTS; at++, slots_rotate(p)) {
        float score = p->at[0] * a->scale;
        p->at[0] = sees(ct, at) ? query_p(bias_score(score, 1, a, work, ct, at), lse) : 0;
    }
}

/* Sparsegen: the mean of dP over the row's support, in a pass of its own. dP goes to the scratch, -inf outside
   the support. */
DEVICE float support_mean(const struct abi_args *a, const struct work_item *work, float lse)
{
    struct walk w = walk_start(&a->forward, work);
    struct column_tile ct;
    struct slots p, dp;
    float sum = 0, count = 0;
    while (walk_next(&w, &ct)) {
        query_p_dp(a, work, &ct, lse, &p, &dp);
        UNROLL
        for (u32 k = 0; k < SLOTS; k++) {
            u32 supports = p.at[k] > 0;
            sum += supports ? dp.at[k] : 0;
            count += supports ? 1 : 0;
            dp.at[k] = supports ? dp.at[k] : NEGATIVE_INFINITY;
        }
        scratch_put(scratch_of(a), &dp, &ct);
    }
    sum = reduce_row_sum(work, sum);
    count = reduce_row_sum(work, count);
    return count > 0 ? sum / count : 0;
}

/* P and dP as support_mean stored them; K comes to tile 2. */
DEVICE void query_p_dp_stored(const struct abi_args *a, const struct work_item *work,
                              const struct column_tile *ct, struct slots *p, struct slots *dp)
{
    struct view k = view_of(&a->k, work);
    fetch(shared_tile(2), &k, ct, work);
    scratch_get(scratch_of(a), dp, ct);
    UNROLL
    for (u32 at = 0; at < SLOTS; at++)
        p->at[at] = dp->at[at] > NEGATIVE_INFINITY ? 1 : 0;
}

/* tf32: O is a sum of rounded products, so rowsum(dO o O) is too inaccurate. An extra pass 0, which runs the code
   of pass 1, first computes delta as the sum of P dP. */
enum { DELTA_PASS = TRANSFORM == ABI_SOFTMAX && DTYPE != ABI_F32 };

/* delta, if it is known before the passes. */
DEVICE float known_delta(const struct abi_args *a, const struct work_item *work, float lse)
{
    if (TRANSFORM == ABI_SPARSEGEN)
        return support_mean(a, work, lse);
    return DELTA_PASS ? 0 : row_delta(a, work);
}

/* Stores delta of a row that sees `keys` columns, for dK and dX (bias.h). */
DEVICE void put_delta(const struct abi_args *a, const struct work_item *work, float delta,
                      float keys)
{
    if (ADD_BIAS && work->global_row)
        keys = block_reduce(keys, 0);
    if (!is_row_writer(work))
        return;
    float *to = delta_of(a, work) + work->row;
    *to = delta;
    if (ADD_BIAS)
        *bias_delta_correction(a, to) = keys == 1 ? -NEGATIVE_INFINITY : 0;
}

DEVICE void row_block_dq(const struct abi_args *a, const struct work_item *work)
{
    struct view q = view_of(&a->q, work), d_o = view_of(&a->d_o, work),
                k = view_of(&a->k, work);
    SYNC();
    load_own_rows(&q, &d_o, work);
    float lse = work->active ? lse_of(a, work)[work->row] : 0, sum = 0, keys = 0;
    float delta = known_delta(a, work, lse);
    struct sums d_q;
    sums_clear(&d_q);
    NO_UNROLL
    for (u32 pass = DELTA_PASS ? 0 : 1; pass < 2; pass++) {
        struct walk w = walk_start(&a->forward, work);
        struct column_tile ct;
        struct slots p, ds;
        while (walk_next(&w, &ct)) {
            if (TRANSFORM == ABI_SPARSEGEN)
                query_p_dp_stored(a, work, &ct, &p, &ds);
            else
                query_p_dp(a, work, &ct, lse, &p, &ds);
            UNROLL
            for (u32 at = 0; at < SLOTS; at++) {
                sum += pass ? 0 : p.at[at] * ds.at[at];
                ds.at[at] = score_gradient(p.at[at], ds.at[at], delta);
            }
            if (pass)
                accumulate(&d_q, &ds, shared_tile(2), &ct, &k);
            for (u32 bits = ADD_BIAS && pass ? ct.bits : 0; bits; bits &= bits - 1)
                keys += 1;
        }
        delta = pass ? delta : reduce_row_sum(work, sum);
    }
    sums_store(&d_q, work, &a->d_q, ds_scale(a));
    put_delta(a, work, delta, keys);
}

ENTRY(attention_dq)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < work_item_count(&a, &a.forward); at += BLOCKS) {
        struct work_item work = work_item_at(&a, &a.forward, at);
        row_block_dq(&a, &work);
    }
}
