/* SPDX-License-Identifier: Apache-2.0 */
/* dX in float: a block owns 32 queries, 32 keys and a chunk of the batch, whose sequences it adds up in
   registers, in order. LSE and state are there already. */
#include "cuda/common/bias_sum.h"
#include "cuda/common/mask_word.h"
#include "cuda/simt/backward.h"

/* P (scores come in *s) and dP to what an entry adds to dX. */
DEVICE void bias_add(const struct abi_args *a, const struct job *j, const struct group *g,
                     const struct slots *s, const struct slots *dp, struct slots *sum)
{
    float lse = j->active ? lse_of(a, j)[j->row] : 0;
    float state = j->active ? state_of(a, j)[j->row] : 0;
    const float slope = sparsegen_slope(a);
    if (ADD_BIAS && j->active && *bias_rest(a, state_of(a, j) + j->row) != 0)
        return;
    UNROLL
    for (u32 k = 0; k < SLOTS; k++) {
        if (!sees(g, k))
            continue;
        float p = probability(bias_score(s->at[k] * a->scale, 1, a, j, g, k, 0), lse, slope);
        float x = SCALE_PROBS ? p * dp->at[k] : score_gradient(p, dp->at[k], state);
        sum->at[k] += ADD_BIAS && TRANSFORM == ABI_SPARSEGEN ? x * slope : x;
    }
}

/* One sequence: rows j->row, columns from g->column on; `word` is what the mask has of the row. */
DEVICE void bias_add_sequence(const struct abi_args *a, struct job *j, struct group *g,
                              u32 word, struct slots *sum)
{
    struct view q = view_of(&a->q, j), d_o = view_of(&a->d_o, j);
    struct view key = view_of(&a->k, j), value = view_of(&a->v, j);
    struct slots s, dp;
    j->active = j->row < j->length;
    g->end = smaller(32, j->length - (u32)g->column);
    g->bits = j->active ? word & bits_between(0, g->end) : 0;
    SYNC();
    load_own_rows(&q, &d_o, j);
    fetch(shared_tile(2), &key, g, j);
    dots(&s, shared_tile(0), shared_tile(2), g, &key);
    fetch(shared_tile(2), &value, g, j);
    dots(&dp, shared_tile(1), shared_tile(2), g, &value);
    dropout(&dp, a, dropout_kept(a, j, g, 0));
    bias_add(a, j, g, &s, &dp, sum);
}

/* Whether any row of the block sees a column here: the same for all its threads. */
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
    struct group g;
    struct job j;
    slots_clear(&sum);
    g.tile = 1;
    g.begin = g.stored = 0;
    g.column = (i32)column;
    g.columns = 0;
    g.line = 0;
    j.h = h;
    j.single = 0;
    j.row = row;
    u32 b = (u32)((u64)a->batch * chunk / a->bias_chunks);
    u32 end = (u32)((u64)a->batch * (chunk + 1) / a->bias_chunks);
    NO_UNROLL
    for (end = bias_any(word) ? end : b; b < end; b++) {
        j.b = b;
        job_sequence(&j, a);
        if (row0 < j.length && column < j.length)
            bias_add_sequence(a, &j, &g, word, &sum);
    }
    NO_UNROLL
    for (u32 k = 0; k < SLOTS; k++, slots_turn(&sum)) {
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
