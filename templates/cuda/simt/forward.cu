/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax over the visited columns, in one walk: a running maximum, a running sum, and the
   output scaled down whenever the maximum grows. Exponents are to base 2 inside. In the row
   pass every quad has its own state until the end. */
#include "cuda/simt/dropout.h"
#include "cuda/simt/pieces.h"
#include "cuda/simt/sparsegen.h"

struct softmax {
    float top; /* maximum, base 2; -inf before the first column; the same in a quad */
    float sum; /* of exp2(score - top); the thread's part */
};

/* What scores are counted from: never infinite, so that nothing becomes inf - inf. */
DEVICE float softmax_origin(float top)
{
    return top == NEGATIVE_INFINITY ? 0 : top;
}

/* Scores to weights; *o and the state follow the new maximum. */
DEVICE void softmax_add(struct softmax *state, struct slots *s, struct sums *o,
                        const struct abi_args *a, const struct job *j, const struct group *g)
{
    float scale = a->scale * LOG2_E, top = state->top;
    UNROLL
    for (u32 k = 0; k < SLOTS; k++) {
        s->at[k] = sees(g, k) ? bias_score(s->at[k] * scale, LOG2_E, a, j, g, k, 0)
                              : NEGATIVE_INFINITY;
        top = larger(top, s->at[k]);
    }
    top = quad_max(top);
    float origin = softmax_origin(top);
    float alpha = exp2_of(state->top - origin);
    state->top = top;
    state->sum *= alpha;
    sums_scale(o, alpha);
    UNROLL
    for (u32 k = 0; k < SLOTS; k++) {
        s->at[k] = exp2_of(s->at[k] - origin);
        state->sum += s->at[k];
    }
}

/* Writes the row's output and LSE; a row that saw nothing gets 0 and -inf. */
DEVICE void softmax_store(const struct softmax *state, struct sums *o, const struct abi_args *a,
                          const struct job *j)
{
    float top = row_max(j, state->top), origin = softmax_origin(top);
    float weight = exp2_of(state->top - origin);
    float sum = row_sum(j, state->sum * weight);
    sums_store(o, j, &a->o, sum > 0 ? weight / sum : 0);
    if (job_speaks(j)) {
        float *lse = a->lse + j->b * a->lse_batch + j->h * a->lse_head + j->first;
        lse[j->row] = sum > 0 ? (top + log2_of(sum)) * LN_2 : NEGATIVE_INFINITY;
    }
}

DEVICE void forward_softmax(const struct abi_args *a, const struct job *j)
{
    struct view q = view_of(&a->q, j), k = view_of(&a->k, j), v = view_of(&a->v, j);
    float *rows = shared_tile(0), *keys = shared_tile(1), *values = shared_tile(2);
    struct softmax state = {NEGATIVE_INFINITY, 0};
    struct sums o;
    sums_clear(&o);
    SYNC();
    load_row(rows, &q, j->row, j->active);
    struct walk w = walk_start(&a->forward, j);
    struct group g;
    struct slots s;
    while (walk_next(&w, &g)) {
        fetch_two(keys, &k, values, &v, &g, j);
        dots(&s, rows, keys, &g, &k);
        softmax_add(&state, &s, &o, a, j, &g);
        bias_scale(&s, a, j, &g);
        dropout(&s, a, dropout_kept(a, j, &g, 0));
        accumulate(&o, &s, values, &g, &v);
    }
    softmax_store(&state, &o, a, j);
}

ENTRY(attention_forward)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < job_count(&a, &a.forward); at += BLOCKS) {
        struct job j = job_at(&a, &a.forward, at);
        if (TRANSFORM == ABI_SPARSEGEN)
            forward_sparsegen(&a, &j);
        else
            forward_softmax(&a, &j);
    }
}
