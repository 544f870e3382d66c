/* SPDX-License-Identifier: Apache-2.0 */
/* Backward attention on sm_90a: what dQ (queries.cu) and dK, dV (keys.cu) share. For each step of an item:

       X = rows 0 . columns 0 ^T     S, or its transpose
       Y = rows 1 . columns 1 ^T     dP, or its transpose
       P = 2^(X - LSE), dS = P (Y - delta)
       sum 0 = sum 0 + dS . columns 0     dQ, or dK
       sum 1 = sum 1 + P . columns 1      dV

   P and dS go from registers straight into the next products: nothing is transposed in memory. Nothing is added
   atomically: sums run in the order of the steps. */
#ifndef MASKC_CUDA_HOPPER_BACKWARD_H
#define MASKC_CUDA_HOPPER_BACKWARD_H
#include "cuda/hopper/dropout.h"

struct backward {
    struct sums sum[2];  /* the second where rows are keys, or delta is corrected */
    struct halves p, ds; /* of the last step */
    struct held_rows rows[2];
    struct ring last;       /* the stage of the last step ... */
    u32 pending;            /* ... which is still to be given back */
    float scale;            /* to base 2 */
    float lse[2], delta[2]; /* of the lane's rows, where these are queries; LSE to base 2 */
    float drift[2];         /* of these rows: what delta lacks (correct.h) */
};

/* Data from which both scores of a step are made. */
struct backward_step {
    struct scores x, y;
    struct kept kept;
};

DEVICE smem_t column_operand(const struct warpgroup *g, u32 stage, u32 operand)
{
    return g->base + columns_at(g->k, stage, operand) + g->first_slot * HOPPER_SLOT_BYTES;
}

DEVICE void read_held(struct backward *b, const struct warpgroup *g)
{
    UNROLL
    for (u32 k = 0; k < g->k->rows_held; k++)
        read_rows(&b->rows[k], g, opt_barrier(own_rows(g, k)));
}

/* Like keep_rows() of forward.cu. */
DEVICE void keep_held(struct backward *b, const struct warpgroup *g, u32 mode)
{
    if (g->k->rows_held && mode == (u32)MODE_NEVER)
        read_held(b, g);
}

DEVICE void hold_all_sums(struct backward *b, const struct warpgroup *g)
{
    hold_sums(&b->sum[0]);
    if (g->k->rows_are_keys)
        hold_sums(&b->sum[1]);
}

DEVICE void give_back_last(struct backward *b, const struct warpgroup *g)
{
    mbarrier_arrive_if(barrier_of(g, stage_empty(g->k, b->last.at, 0)),
                       lane() == 0 && b->pending);
    b->pending = 0;
}

/* Issues X, then Y. */
DEVICE void issue_both(struct backward *b, const struct warpgroup *g, struct backward_step *s)
{
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        multiply_scores(k ? &s->y : &s->x, g->k, own_rows(g, k),
                        g->k->rows_held > k ? &b->rows[k] : 0,
                        column_operand(g, g->stage.at, k));
        wgmma_commit();
    }
}

/* ---- LSE (0) and delta (1) of columns 8 j + 2 t and 8 j + 2 t + 1 ---- */

DEVICE struct f2 column_numbers(const struct warpgroup *g, u32 which, u32 j)
{
    const smem_t at = g->base + numbers_at(g->k, g->stage.at);
    return smem_get_f2(at + 4 * (which * g->k->slots * SLOT_COLUMNS + 8 * j + 2 * quad_lane()));
}

/* X to P. */
DEVICE void step_probabilities(const struct backward *b, const struct warpgroup *g,
                               struct scores *x)
{
    UNROLL
    for (u32 j = 0; j < 4 * g->k->slots_at_once; j++) {
        struct f2 l = {0, 0};
        if (g->k->rows_are_keys)
            l = column_numbers(g, 0, j);
        UNROLL
        for (u32 e = 0; e < 4; e++) {
            const float lse = g->k->rows_are_keys ? (e % 2 ? l.y : l.x) : b->lse[e / 2];
            x->x[4 * j + e] = exp2_of(x->x[4 * j + e] * b->scale - lse);
        }
    }
}

/* Y to dS. */
DEVICE void step_gradients(const struct backward *b, const struct warpgroup *g,
                           struct backward_step *s)
{
    UNROLL
    for (u32 j = 0; j < 4 * g->k->slots_at_once; j++) {
        struct f2 d = {0, 0};
        if (g->k->rows_are_keys)
            d = column_numbers(g, 1, j);
        UNROLL
        for (u32 e = 0; e < 4; e++) {
            const u32 at = 4 * j + e;
            const float delta = g->k->rows_are_keys ? (e % 2 ? d.y : d.x) : b->delta[e / 2];
            s->y.x[at] = s->x.x[at] * (kept_times(&s->kept, &g->a->a, at, s->y.x[at]) - delta);
        }
    }
}

DEVICE void issue_sums(struct backward *b, const struct warpgroup *g)
{
    if (g->k->rows_are_keys)
        multiply_columns(&b->sum[1], g->k, &b->p, column_operand(g, g->stage.at, 1));
    multiply_columns(&b->sum[0], g->k, &b->ds, column_operand(g, g->stage.at, 0));
    wgmma_commit();
}

/* Waits for X and for what the last step added. */
DEVICE void await_x(struct backward *b, const struct warpgroup *g, struct backward_step *s)
{
    WGMMA_WAIT(1);
    hold_scores(&s->x, g->k);
    if (!g->k->wait_sums) {
        hold_all_sums(b, g);
        hold_halves(&b->ds, g->k);
        if (g->k->rows_are_keys)
            hold_halves(&b->p, g->k);
        give_back_last(b, g);
    }
}

/* Sets dS to 0 where P is 0: rows and columns past the sequence may hold anything. */
DEVICE void clear_unseen(const struct kernel_shape *k, struct scores *ds,
                         const struct scores *p)
{
    UNROLL
    for (u32 x = 0; x < 16 * k->slots_at_once; x++)
        ds->x[x] = p->x[x] == 0 ? 0 : ds->x[x];
}

/* Registers of the next products are written only when Y is there: else ptxas serialises all products (C7513). */
DEVICE void step_operands(struct backward *b, const struct warpgroup *g,
                          struct backward_step *s, u32 mode)
{
    step_gradients(b, g, s);
    if (mode & MODE_CLEAR)
        clear_unseen(g->k, &s->y, &s->x);
    scores_pack(&b->ds, &s->y, g->k);
    hold_halves(&b->ds, g->k);
    if (g->k->rows_are_keys) {
        kept_apply(&s->kept, g, &s->x);
        scores_pack(&b->p, &s->x, g->k);
        hold_halves(&b->p, g->k);
    }
    hold_all_sums(b, g);
}

DEVICE void step_end(struct backward *b, struct warpgroup *g)
{
    b->last = g->stage;
    b->pending = 1;
    if (g->k->wait_sums) {
        WGMMA_WAIT(0);
        hold_all_sums(b, g);
        give_back_last(b, g);
    }
    step_done(g);
}

DEVICE void backward_step(struct backward *b, struct warpgroup *g, struct step_now *now)
{
    struct backward_step s;
    struct words words;
    if (now->mode != MODE_WHOLE)
        words_read(&words, g, now->mode);
    kept_read(&s.kept, g);
    turn_wait(g);
    hold_scores(&s.x, g->k);
    hold_scores(&s.y, g->k);
    wgmma_fence();
    issue_both(b, g, &s);
    turn_pass(g);
    await_x(b, g, &s);
    step_probabilities(b, g, &s.x);
    if (now->mode != MODE_WHOLE)
        words_apply(&words, g->k, &s.x, 0);
    WGMMA_WAIT(0);
    keep_held(b, g, now->mode);
    hold_scores(&s.y, g->k);
    step_operands(b, g, &s, now->mode);
    wgmma_fence();
    issue_sums(b, g);
    step_end(b, g);
}

/* Goes through all steps of the item. The last stage is given back after each run of steps, before the next one is looked for:
   else warpgroups might wait for each other. */
DEVICE void backward_steps(struct backward *b, struct warpgroup *g, struct step_now *now)
{
    b->pending = 0;
    b->last.at = b->last.phase = 0;
    NO_UNROLL
    while (step_find(g, now)) {
        NO_UNROLL
        do
            backward_step(b, g, now);
        while (step_next(g, now));
        WGMMA_WAIT(0);
        hold_all_sums(b, g);
        give_back_last(b, g);
    }
}

#endif
