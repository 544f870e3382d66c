/* SPDX-License-Identifier: Apache-2.0 */
/* The SIMT family: dK and dV. */
#include "cuda/simt/backward.h"

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
    at.i = sees(g, k) ? group_column(g, slot_of(k, quad_lane())) : 0;
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

ENTRY(attention_dkv)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < job_count(&a, &a.transposed); at += BLOCKS) {
        struct job j = job_at(&a, &a.transposed, at);
        gradient_of_keys(&a, &j);
    }
}
