/* SPDX-License-Identifier: Apache-2.0 */
/* SIMT family: dK and dV of a row block of keys, over the transposed plan.

       load_own_rows                 K and V to tiles 0 and 1
       for each column tile of queries:
           both_dots                 S^T = K Q^T, dP^T = V dO^T; dO stays in tile 2
           key_p_ds                  P = exp(S - LSE), dS = P (dP - delta); dropout
           accumulate                dV += P^T dO, dK += dS^T Q
       store_key_sums */
#include "cuda/common/key_heads.h"
#include "cuda/simt/backward.h"

/* Dropout's draws are made before the products where registers hold their bits meanwhile. */
enum { DRAWS_FIRST = CHUNKS <= 8 };

/* The thread's entry at place k: its query, X, and whether dropout keeps it. */
struct key_place {
    u32 k, i;
    float bias;
    u32 kept;
};

DEVICE struct key_place key_place(const struct abi_args *a, const struct work_item *work,
                                  const struct column_tile *ct, u32 k, u32 kept)
{
    struct key_place at;
    at.k = k;
    at.kept = kept >> k & 1;
    at.i = sees(ct, k) ? slot_column(ct, slot_of(k, quad_lane())) : 0;
    at.bias = BIAS && sees(ct, k) ? a->bias[bias_at(a, work->h, at.i, work->row)] : 0;
    return at;
}

/* S to P. */
DEVICE void key_p(const struct abi_args *a, const struct work_item *work,
                  const struct column_tile *ct, const struct key_place *at, float p_scale,
                  float *p)
{
    float score = ADD_BIAS ? *p * a->scale + at->bias : *p * a->scale;
    *p = sees(ct, at->k) ? probability(score, lse_of(a, work)[at->i], p_scale) : 0;
}

/* P to P after dropout, dP to dS; a bias that scales probabilities counts like dropout. */
DEVICE void key_ds(const struct abi_args *a, const struct work_item *work,
                   const struct column_tile *ct, const struct key_place *at, float *p,
                   float *dp)
{
    float factor = dropout_factor(a, at->kept) * (SCALE_PROBS ? at->bias : 1);
    float ds = score_gradient(*p, *dp * factor, delta_of(a, work)[at->i]);
    *dp = sees(ct, at->k) ? ds : 0;
    *p *= factor;
}

/* S and dP to P and dS. Entry by entry, since finding the query is much code; with wide heads P of all entries
   first, as the draws come only then. */
DEVICE void key_p_ds(const struct abi_args *a, const struct work_item *work,
                     const struct column_tile *ct, u32 kept, struct slots *p, struct slots *dp)
{
    const float p_scale = sparsegen_scale(a);
    UNROLL_BY(SLOTS_UNROLLED)
    for (u32 k = 0; k < SLOTS; k++, slots_rotate(p)) {
        const struct key_place at = key_place(a, work, ct, k, kept);
        key_p(a, work, ct, &at, p_scale, &p->at[0]);
        if (DRAWS_FIRST) {
            key_ds(a, work, ct, &at, &p->at[0], &dp->at[0]);
            slots_rotate(dp);
        }
    }
    if (DRAWS_FIRST)
        return;
    kept = dropout_kept(a, work, ct, 1);
    UNROLL_BY(SLOTS_UNROLLED)
    for (u32 k = 0; k < SLOTS; k++, slots_rotate(p), slots_rotate(dp)) {
        const struct key_place at = key_place(a, work, ct, k, kept);
        key_ds(a, work, ct, &at, &p->at[0], &dp->at[0]);
    }
}

/* To the tensors. A loop, where registers allow it. */
DEVICE void store_key_sums(struct sums *d_k, struct sums *d_v, const struct abi_args *a,
                           const struct work_item *work)
{
    if (CHUNKS > 8) {
        sums_store(d_k, work, &a->d_k, ds_scale(a));
        sums_store(d_v, work, &a->d_v, 1);
        return;
    }
    NO_UNROLL
    for (u32 second = 0; second < 2;
         second++) { /* a copy, not an index, keeps sums in registers */
        sums_store(d_k, work, second ? &a->d_v : &a->d_k, second ? 1 : ds_scale(a));
        *d_k = *d_v;
    }
}

DEVICE void row_block_dkv(const struct abi_args *a, const struct work_item *work)
{
    struct view key = view_of(&a->k, work), value = view_of(&a->v, work);
    struct sums d_k, d_v;
    sums_clear(&d_k);
    sums_clear(&d_v);
    /* No barrier: the last fetch of the work item before had one, after the last use of these rows. */
    load_own_rows(&key, &value, work);
    struct walk w = walk_start(&a->transposed, work);
    struct column_tile ct;
    struct slots p, dp;
    while (walk_next(&w, &ct)) {
        u32 kept = DRAWS_FIRST ? dropout_kept(a, work, &ct, 1) : 0;
        const struct both_slots both = {&p, &dp};
        both_dots(both, &a->q, &a->d_o, 1, &ct, work);
        key_p_ds(a, work, &ct, kept, &p, &dp);
        NO_UNROLL
        for (u32 pass = 0; pass < 2; pass++) {
            struct view v = view_recomputed(pass ? &a->q : &a->d_o, work);
            struct sums sum = d_v;
            if (pass)
                fetch(shared_tile(2), &v, &ct, work);
            accumulate(&sum, &p, shared_tile(2), &ct, &v);
            d_v = d_k;
            d_k = sum;
            p = dp;
        }
    }
    store_key_sums(&d_k, &d_v, a, work);
}

ENTRY(attention_dkv)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < work_item_count(&a, &a.transposed); at += BLOCKS) {
        struct work_item work = work_item_at(&a, &a.transposed, at);
        row_block_dkv(&a, &work);
    }
}
