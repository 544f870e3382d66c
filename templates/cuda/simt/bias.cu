/* SPDX-License-Identifier: Apache-2.0 */
/* SIMT family: dX, the gradient of a bias, after dQ, which stored delta. A block owns 32 queries, 32 keys and a
   chunk of the batch:

       for each sequence of the chunk, in order:
           S = Q K^T, dP = dO V^T, P = exp(S - LSE)
           dX += P (dP - delta)      additive bias
           dX += P dP                bias that scales probabilities */
#include "cuda/common/bias_sum.h"
#include "cuda/common/mask_word.h"
#include "cuda/simt/backward.h"

/* Adds what one sequence contributes to dX; S comes in *s. */
DEVICE void bias_add(const struct abi_args *a, const struct work_item *work,
                     const struct column_tile *ct, const struct slots *s,
                     const struct slots *dp, struct slots *sum)
{
    float lse = work->active ? lse_of(a, work)[work->row] : 0;
    float delta = work->active ? delta_of(a, work)[work->row] : 0;
    const float p_scale = sparsegen_scale(a);
    if (ADD_BIAS && work->active &&
        *bias_delta_correction(a, delta_of(a, work) + work->row) != 0)
        return;
    UNROLL
    for (u32 k = 0; k < SLOTS; k++) {
        if (!sees(ct, k))
            continue;
        float p = probability(bias_score(s->at[k] * a->scale, 1, a, work, ct, k), lse, p_scale);
        float x = SCALE_PROBS ? p * dp->at[k] : score_gradient(p, dp->at[k], delta);
        sum->at[k] += ADD_BIAS && TRANSFORM == ABI_SPARSEGEN ? x * p_scale : x;
    }
}

/* One sequence, at the rows of `work` and the columns of `ct`; `word` is the mask's word of the thread's row. */
DEVICE void bias_add_sequence(const struct abi_args *a, struct work_item *work,
                              struct column_tile *ct, u32 word, struct slots *sum)
{
    struct view q = view_of(&a->q, work), d_o = view_of(&a->d_o, work);
    struct view key = view_of(&a->k, work), value = view_of(&a->v, work);
    struct slots s, dp;
    work->active = work->row < work->length;
    ct->end = smaller(32, work->length - (u32)ct->column);
    ct->bits = work->active ? word & bits_between(0, ct->end) : 0;
    SYNC();
    load_own_rows(&q, &d_o, work);
    fetch(shared_tile(2), &key, ct, work);
    dots(&s, shared_tile(0), shared_tile(2), ct, &key);
    fetch(shared_tile(2), &value, ct, work);
    dots(&dp, shared_tile(1), shared_tile(2), ct, &value);
    dropout(&dp, a, dropout_kept(a, work, ct, 0));
    bias_add(a, work, ct, &s, &dp, sum);
}

/* True if any row of the block sees a column here: the same for all its threads. */
DEVICE u32 bias_any(u32 word)
{
    float *flags = SHARED() + SHARED_SUMS;
    u32 any = ANY(word);
    SYNC();
    if (THREAD % 32 == 0)
        shared_put(flags + THREAD / 32, any ? 1 : 0);
    SYNC();
    any = 0;
    UNROLL
    for (u32 w = 0; w < THREADS / 32; w++)
        any |= shared_get(flags + w) > 0;
    return any;
}

DEVICE void bias_tile(const struct abi_args *a, u32 h, u32 row0, u32 column, u32 chunk)
{
    const u32 n = a->forward.n, row = row0 + quad();
    float *part = a->bias_part + (u64)chunk * a->heads * n * n;
    u32 word = row < n ? mask_word(&a->forward, h, row, column) : 0;
    struct slots sum;
    struct column_tile ct;
    struct work_item work;
    slots_clear(&sum);
    ct.is_tile = 1;
    ct.begin = ct.stored = 0;
    ct.column = (i32)column;
    ct.columns = 0;
    ct.line = 0;
    work.h = h;
    work.global_row = 0;
    work.row = row;
    u32 b = (u32)((u64)a->batch * chunk / a->bias_chunks);
    u32 end = (u32)((u64)a->batch * (chunk + 1) / a->bias_chunks);
    NO_UNROLL
    for (end = bias_any(word) ? end : b; b < end; b++) {
        work.b = b;
        work_item_sequence(&work, a, 0);
        if (row0 < work.length && column < work.length)
            bias_add_sequence(a, &work, &ct, word, &sum);
    }
    NO_UNROLL
    for (u32 k = 0; k < SLOTS; k++, slots_rotate(&sum)) {
        u32 key = column + slot_of(k, quad_lane());
        if (row < n && key < n)
            part[bias_at(a, h, row, key)] = sum.at[0];
    }
}

ENTRY(attention_dx)(ARGS a)
{
    const u32 side = (a.forward.n + 31) / 32;
    const u64 tiles = (u64)a.heads * side * side;
    NO_UNROLL
    for (u64 at = BLOCK; at < tiles * a.bias_chunks; at += BLOCKS) {
        u64 tile = at % tiles;
        u32 h = (u32)(tile / side / side), row = (u32)(tile / side % side);
        bias_tile(&a, h, 32 * row, 32 * (u32)(tile % side), (u32)(at / tiles));
    }
}
