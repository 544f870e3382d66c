/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax over the visited columns, in one walk: a running maximum, a running sum, and the
   output scaled down whenever the maximum grows. Exponents are to base 2 inside. In the row
   pass every quad has its own state until the end. */
#include "cuda/simt/dropout.h"
#include "cuda/simt/pieces.h"
#include "cuda/simt/sparsegen.h"

struct softmax {
    float row_max; /* maximum, base 2; -inf before the first column; the same in a quad */
    float sum;     /* of exp2(score - top); the thread's part */
};

/* What scores are counted from: never infinite, so that nothing becomes inf - inf. */
DEVICE float finite_max(float row_max)
{
    return row_max == NEGATIVE_INFINITY ? 0 : row_max;
}

/* Scores to weights; *o and the state follow the new maximum. */
DEVICE void softmax_add(struct softmax *state, struct slots *s, struct sums *o,
                        const struct abi_args *a, const struct work_item *work,
                        const struct column_tile *ct)
{
    float scale = a->scale * LOG2_E, row_max = state->row_max;
    UNROLL
    for (u32 k = 0; k < SLOTS; k++) {
        s->at[k] = sees(ct, k) ? bias_score(s->at[k] * scale, LOG2_E, a, work, ct, k, 0)
                               : NEGATIVE_INFINITY;
        row_max = larger(row_max, s->at[k]);
    }
    row_max = quad_max(row_max);
    float shift = finite_max(row_max);
    float alpha = exp2_of(state->row_max - shift);
    state->row_max = row_max;
    state->sum *= alpha;
    sums_scale(o, alpha);
    UNROLL
    for (u32 k = 0; k < SLOTS; k++) {
        s->at[k] = exp2_of(s->at[k] - shift);
        state->sum += s->at[k];
    }
}

/* Writes the row's output and LSE; a row that saw nothing gets 0 and -inf. */
DEVICE void softmax_store(const struct softmax *state, struct sums *o, const struct abi_args *a,
                          const struct work_item *work)
{
    float row_max = reduce_row_max(work, state->row_max), shift = finite_max(row_max);
    float alpha = exp2_of(state->row_max - shift);
    float sum = reduce_row_sum(work, state->sum * alpha);
    sums_store(o, work, &a->o, sum > 0 ? alpha / sum : 0);
    if (is_row_writer(work)) {
        float *lse = a->lse + work->b * a->lse_batch + work->h * a->lse_head + work->first;
        lse[work->row] = sum > 0 ? (row_max + log2_of(sum)) * LN_2 : NEGATIVE_INFINITY;
    }
}

DEVICE void forward_softmax(const struct abi_args *a, const struct work_item *work)
{
    struct view q = view_of(&a->q, work), k = view_of(&a->k, work), v = view_of(&a->v, work);
    float *rows = shared_tile(0), *keys = shared_tile(1), *values = shared_tile(2);
    struct softmax state = {NEGATIVE_INFINITY, 0};
    struct sums o;
    sums_clear(&o);
    SYNC();
    load_row(rows, &q, work->row, work->active);
    struct walk w = walk_start(&a->forward, work);
    struct column_tile ct;
    struct slots s;
    while (walk_next(&w, &ct)) {
        fetch_two(keys, &k, values, &v, &ct, work);
        dots(&s, rows, keys, &ct, &k);
        softmax_add(&state, &s, &o, a, work, &ct);
        bias_scale(&s, a, work, &ct);
        dropout(&s, a, dropout_kept(a, work, &ct, 0));
        accumulate(&o, &s, values, &ct, &v);
    }
    softmax_store(&state, &o, a, work);
}

ENTRY(attention_forward)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < work_item_count(&a, &a.forward); at += BLOCKS) {
        struct work_item work = work_item_at(&a, &a.forward, at);
        if (TRANSFORM == ABI_SPARSEGEN)
            forward_sparsegen(&a, &work);
        else
            forward_softmax(&a, &work);
    }
}
