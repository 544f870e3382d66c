/* SPDX-License-Identifier: Apache-2.0 */
/* dQ where delta must be corrected: over the steps of an item, a half of a step's columns at a time, since registers hold a second sum,

       sum 0 = sum 0 + dS K,  sum 1 = sum 1 + P K,  drift = drift + the row sums of dS

   with dS as the estimate of delta has it. Then dQ = sum 0 - drift sum 1, and delta = estimate + drift. */
#ifndef MASKC_CUDA_HOPPER_CORRECT_H
#define MASKC_CUDA_HOPPER_CORRECT_H
#include "cuda/hopper/backward.h"

DEVICE void add_drift(struct backward *b, const struct kernel_shape *k, const struct scores *ds)
{
    UNROLL
    for (u32 x = 0; x < 16 * k->slots_at_once; x++)
        b->drift[x / 2 % 2] += ds->x[x];
}

/* P and dS of the columns at hand. */
DEVICE void corrected_scores(struct backward *b, const struct warpgroup *g, u32 mode)
{
    struct backward_step s;
    struct words words;
    if (mode != MODE_WHOLE)
        words_read(&words, g, mode);
    kept_read(&s.kept, g);
    hold_scores(&s.x, g->k);
    hold_scores(&s.y, g->k);
    wgmma_fence();
    issue_both(b, g, &s);
    WGMMA_WAIT(0);
    hold_scores(&s.x, g->k);
    hold_scores(&s.y, g->k);
    keep_held(b, g, mode);
    step_probabilities(b, g, &s.x);
    if (mode != MODE_WHOLE)
        words_apply(&words, g->k, &s.x, 0);
    step_gradients(b, g, &s);
    if (mode != MODE_WHOLE)
        clear_unseen(g->k, &s.y, &s.x);
    add_drift(b, g->k, &s.y);
    scores_pack(&b->ds, &s.y, g->k);
    scores_pack(&b->p, &s.x, g->k);
}

DEVICE void corrected_sums(struct backward *b, const struct warpgroup *g)
{
    hold_halves(&b->ds, g->k);
    hold_halves(&b->p, g->k);
    hold_sums(&b->sum[0]);
    hold_sums(&b->sum[1]);
    wgmma_fence();
    UNROLL
    for (u32 k = 0; k < 2; k++)
        multiply_columns(&b->sum[k], g->k, k ? &b->p : &b->ds,
                         column_operand(g, g->stage.at, 0));
    wgmma_commit();
    WGMMA_WAIT(0);
    hold_sums(&b->sum[0]);
    hold_sums(&b->sum[1]);
}

DEVICE void corrected_step(struct backward *b, struct warpgroup *g, struct step_now *now)
{
    struct kernel_shape shape = *g->k;
    struct warpgroup half = *g;
    shape.slots_at_once = g->k->slots / 2;
    half.k = &shape;
    NO_UNROLL
    for (u32 s = 0; s < g->k->slots; s += shape.slots_at_once) {
        half.first_slot = s;
        corrected_scores(b, &half, now->mode);
        corrected_sums(b, &half);
    }
    stage_give_back(g, g->stage.at, 0);
    step_done(g);
}

DEVICE void corrected_steps(struct backward *b, struct warpgroup *g, struct step_now *now)
{
    sums_clear(&b->sum[1]);
    b->drift[0] = b->drift[1] = 0;
    NO_UNROLL
    while (step_find(g, now))
        corrected_step(b, g, now);
    b->drift[0] = quad_sum(b->drift[0]);
    b->drift[1] = quad_sum(b->drift[1]);
}

/* Takes the drift off dQ, and adds it to delta. */
DEVICE void correct(struct backward *b)
{
    UNROLL
    for (u32 r = 0; r < 2; r++)
        b->delta[r] += b->drift[r];
    UNROLL
    for (u32 x = 0; x < SUMS; x++)
        b->sum[0].x[x] -= b->drift[x / 2 % 2] * b->sum[1].x[x];
}

#endif
