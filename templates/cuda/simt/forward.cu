/* SPDX-License-Identifier: Apache-2.0 */
/* SIMT family, forward, in float arithmetic for every CUDA target; the plan's tables say what to visit.

       load_q                        32 rows to shared memory
       for each column tile (32 keys, or 32 slots of lines):
           load_kv                   to shared memory; keys on lines are read where they are used
           compute_qk                S = Q K^T
           apply_mask                S = -inf where the row does not see the key; m' = max(m, S)
           online_softmax            alpha = 2^(m - m'), P = 2^(S - m'), l = alpha l + sum P, O = alpha O
           apply_dropout             P = P times 0 or 1 / (1 - rate)
           compute_pv                O = O + P V
       forward_epilogue              O / l, LSE = m + log l

   Each quad has one row. On a global row each quad has its own m, l and O until the epilogue reduces them.
   Sparsegen is in sparsegen.h. */
#include "cuda/simt/dropout.h"
#include "cuda/simt/pieces.h"
#include "cuda/simt/sparsegen.h"

DEVICE void load_q(float *rows, const struct view *q, const struct work_item *work)
{
    load_row(rows, q, work->row, work->active);
}

DEVICE void load_kv(float *keys, const struct view *k, float *values, const struct view *v,
                    const struct column_tile *ct, const struct work_item *work)
{
    fetch_two(keys, k, values, v, ct, work);
}

DEVICE void compute_qk(struct slots *s, const float *rows, const float *keys,
                       const struct column_tile *ct, const struct view *k)
{
    dots(s, rows, keys, ct, k);
}

DEVICE void compute_pv(struct sums *o, const struct slots *p, const float *values,
                       const struct column_tile *ct, const struct view *v)
{
    accumulate(o, p, values, ct, v);
}

struct softmax {
    float row_max; /* to base 2; -inf before the first column; the same in a quad */
    float sum;     /* of P; the thread's part */
};

/* The maximum to subtract from scores; 0 for a row that has seen nothing, so that inf - inf never occurs. */
DEVICE float finite_max(float row_max)
{
    return row_max == NEGATIVE_INFINITY ? 0 : row_max;
}

/* Scores to base 2, plus bias; -inf where the row does not see. Returns the larger of `row_max` and these. */
DEVICE float apply_mask(struct slots *s, float row_max, const struct abi_args *a,
                        const struct work_item *work, const struct column_tile *ct)
{
    const float scale = a->scale * LOG2_E;
    UNROLL
    for (u32 k = 0; k < SLOTS; k++) {
        s->at[k] = sees(ct, k) ? bias_score(s->at[k] * scale, LOG2_E, a, work, ct, k)
                               : NEGATIVE_INFINITY;
        row_max = larger(row_max, s->at[k]);
    }
    return quad_max(row_max);
}

/* Scores to P; O and the softmax state follow the new maximum. */
DEVICE void online_softmax(struct softmax *state, float row_max, struct slots *s,
                           struct sums *o)
{
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

DEVICE void apply_dropout(struct slots *p, const struct abi_args *a,
                          const struct work_item *work, const struct column_tile *ct)
{
    bias_scale(p, a, work, ct);
    dropout(p, a, dropout_kept(a, work, ct, 0));
}

/* O / sum and LSE; a row that saw nothing gets 0 and -inf. */
DEVICE void forward_epilogue(const struct softmax *state, struct sums *o,
                             const struct abi_args *a, const struct work_item *work)
{
    float row_max = reduce_row_max(work, state->row_max), shift = finite_max(row_max);
    float alpha = exp2_of(state->row_max - shift);
    float sum = reduce_row_sum(work, state->sum * alpha);
    sums_store(o, work, &a->o, saw_nothing(sum) ? 0 : alpha / sum);
    if (is_row_writer(work)) {
        float *lse = a->lse + work->b * a->lse_batch + work->h * a->lse_head + work->first;
        lse[work->row] = saw_nothing(sum) ? NEGATIVE_INFINITY : (row_max + log2_of(sum)) * LN_2;
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
    load_q(rows, &q, work);
    struct walk w = walk_start(&a->forward, work);
    struct column_tile ct;
    struct slots s;
    while (walk_next(&w, &ct)) {
        load_kv(keys, &k, values, &v, &ct, work);
        compute_qk(&s, rows, keys, &ct, &k);
        float row_max = apply_mask(&s, state.row_max, a, work, &ct);
        online_softmax(&state, row_max, &s, &o);
        apply_dropout(&s, a, work, &ct);
        compute_pv(&o, &s, values, &ct, &v);
    }
    forward_epilogue(&state, &o, a, work);
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
