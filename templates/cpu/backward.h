/* SPDX-License-Identifier: Apache-2.0 */
/* One item of the backward pass, for both plans.
     for each block of columns J
         S = Q K_J^T * scale, dP = dO V_J^T                 block_dp (with compute_qk's tiles and masks)
         P = 2^(S - LSE)   or max(0, S - tau) / (1 - lambda)
         dS = P (dP - delta)   or (dP - delta) / (1 - lambda) on the support        block_gradient
         dQ += dS K_J      or, transposed: dK += dS^T Q_J, dV += P^T dO_J           block_sums
   delta is rowsum(P dP) for softmax (delta.h), the mean of dP over the support for sparsegen. The dQ pass computes
   and stores it; in the transposed plan LSE and delta belong to columns, and block_dp subtracts them.
   A matrix unit does all of it but the sums tile by tile (panels_gradient). */
#ifndef MASKC_CPU_BACKWARD_H
#define MASKC_CPU_BACKWARD_H
#include "cpu/bias_gradient.h"
#include "cpu/delta.h"
#include "cpu/diagonal/backward.h"
#include "cpu/global_row/backward.h"
#include "cpu/matrix/global_row.h"
#include "cpu/write.h"

/* ---- S and dP to P (in score) and dS (in dp) ---- */

static void block_gradient(const struct row_block *t, struct block *b)
{
    const float inverse = 1 / (1 - t->s.a->lambda),
                softmax_scale = MATRIX ? t->softmax_scale : 1;
    const u32 prefetch = prefetch_share(t->prefetch, t->rows);
    for (u32 r = 0; r < t->rows; r++) {
        vec offset = splat(t->m->offset[r]), delta = splat(t->m->delta[r]);
        prefetch_rows(t->prefetch, prefetch);
        for (u32 c = 0; c < b->cols; c += LANES) {
            vec s = load(&b->score[r][c]), dp = load(&b->dp[r][c]), raw = dp;
            if (!t->transposed) {
                s = s * softmax_scale - offset;
                dp = bias_scaled(b, r, c, raw) - delta;
            }
            vec p, ds;
            if (IS_SOFTMAX) {
                p = exp2_vec(s);
                ds = p * dp;
            } else {
                ivec above = (ivec)(s > 0.0f);
                p = pick_or_zero(above, s * splat(inverse));
                ds = pick_or_zero(above, dp * splat(inverse));
            }
            store(&b->score[r][c], p);
            store(&b->dp[r][c], ds);
            if (!t->transposed)
                bias_put(b, r, c, p, raw);
            p_ds_put(b, 0, r, c, p);
            p_ds_put(b, 1, r, c, ds);
        }
    }
}

/* True if a score is above the row's tau, computed like block_gradient(). */
INLINE ivec score_above(const struct row_block *t, u32 r, vec score)
{
    const vec tau = splat(t->m->offset[r]);
    return MATRIX ? (ivec)(score * t->softmax_scale - tau > 0.0f) : (ivec)(score > tau);
}

/* Sparsegen: delta of each row is the mean of dP over the row's support. */
static void row_block_sparsegen_deltas(const struct row_block *t, u32 blocks)
{
    for (u32 r = 0; r < t->rows; r++) {
        vec sum = {0}, count = {0};
        for (u32 k = 0; k < blocks; k++) {
            const struct block *b = row_block_block(t, k);
            for (u32 c = 0; c < b->cols; c += LANES) {
                ivec above = score_above(t, r, load(&b->score[r][c]));
                sum += pick_or_zero(above, bias_scaled(b, r, c, load(&b->dp[r][c])));
                count += pick_or_zero(above, splat(1));
            }
        }
        float n = sum_lanes(count);
        t->m->delta[r] = n > 0 ? sum_lanes(sum) / n : 0;
    }
}

static void block_backward(const struct row_block *t, struct block *b, float *delta_correction)
{
    if (panels_alone(t, b))
        panels_gradient(t, b, delta_correction);
    else
        block_gradient(t, b);
    block_sums(t, b, (const float(*)[SCORE_STRIDE])b->dp, 0, 0);
    if (!t->transposed) {
        bias_gradient(t, b);
        return;
    }
    block_scale(t, b);
    if (dropping(t) && !panels_alone(t, b))
        block_drop(t, b);
    else if (BIAS == ABI_BIAS_SCALE)
        p_round(t, b);
    block_sums(t, b, (const float(*)[SCORE_STRIDE])b->score, 1, 1);
}

/* The main loop, in one of four forms: by delta from P dP before it; by delta from the one block that has all columns;
   block by block, for softmax and for the transposed plan; and for sparsegen with all blocks kept, as delta needs all
   of a row. */
static void row_block_backward(struct row_block *t)
{
    u32 blocks = 0, corrected = DELTA_CORRECTED && !t->transposed;
    const u32 sums = corrected || t->transposed ? 2 : 1;
    float delta_correction[BLOCK_ROWS];
    for (u32 r = 0; r < BLOCK_ROWS; r++)
        delta_correction[r] = row_merged(t, r) ? partial_numbers(t, r)[0] : 0;
    if (DELTA_FIRST && !t->transposed && !deltas_shared(t->s.a) && row_block_deltas_first(t)) {
        block_backward(t, t->blocks, delta_correction);
        return;
    }
    if (!BLOCKS_KEPT || t->transposed) {
        struct block *b = t->blocks;
        int some = block_next(t, b);
        if (some && row_block_whole(t) && !deltas_shared(t->s.a)) {
            if (BIAS) {
                whole_deltas(t, b);
                block_backward(t, b, delta_correction);
            } else {
                whole_backward(t, b);
            }
            return;
        }
        row_block_deltas(t);
        partial_prefetch(t, sums);
        for (; some; some = block_next(t, b)) {
            if (!panels_alone(t, b))
                block_dp(t, b);
            block_backward(t, b, delta_correction);
            if (corrected)
                delta_correction_add(t, b, delta_correction);
        }
        for (u32 k = 0; k < sums; k++)
            row_block_zero_sums(t, k);
        if (t->item->split)
            store_partial(t, sums, delta_correction, delta_correction);
        if (corrected && !t->item->split)
            delta_correction_apply(t, delta_correction);
        return;
    }
    for (; block_next(t, row_block_block(t, blocks)); blocks++)
        block_dp(t, row_block_block(t, blocks));
    row_block_sparsegen_deltas(t, blocks);
    for (u32 k = 0; k < blocks; k++)
        block_backward(t, row_block_block(t, k), delta_correction);
    if (MATRIX)
        row_block_zero_sums(t, 0);
}

static void backward_epilogue(const struct row_block *t, const struct abi_tensor *to,
                              float scale, u32 which)
{
    float each[BLOCK_ROWS];
    for (u32 r = 0; r < BLOCK_ROWS; r++)
        each[r] = scale;
    row_block_write(t, to, which, each);
}

/* The kernels for global rows; 0 where the item takes another. */
static int backward_special(const struct sequence *s, const struct abi_plan *p,
                            const struct abi_item *item, u8 *scratch)
{
    switch (kernel_of(item)) {
    case ABI_MATRIX_ROW_KERNEL:
        matrix_row_backward(s, p, item, scratch);
        return 1;
    case ABI_GLOBAL_ROW_KERNEL:
        global_row_backward(s, p, item, scratch);
        return 1;
    default:
        return 0;
    }
}

#if BIAS
/* An item of the phase that leaves delta: see deltas_shared(). */
static void delta_item(const struct sequence *s, const struct abi_item *item, u8 *scratch)
{
    struct row_block t;
    struct prefetch x;
    row_block_open(&t, s, &s->a->forward, item, 0, &x, scratch);
    if (!t.live)
        return;
    row_block_take(&t, &s->a->q, t.row_scale, 0);
    row_block_take(&t, &s->a->d_o, 1, 1);
    for (u32 r = 0; r < t.rows; r++)
        t.m->offset[r] = row_live(&t, r) ? score_offset(*lse_at(s, row_of(item, r))) : 0;
    row_block_deltas_shared(&t);
}
#endif

static void dq_item(const struct sequence *s, const struct abi_item *item, u8 *scratch)
{
    struct row_block t;
    struct prefetch x;
    if (backward_special(s, &s->a->forward, item, scratch))
        return;
    row_block_open(&t, s, &s->a->forward, item, 0, &x, scratch);
    if (t.live) {
        row_block_take(&t, &s->a->q, t.row_scale, 0);
        row_block_take(&t, &s->a->d_o, 1, 1);
        row_block_prefetch(&t, &s->a->q, &s->a->d_q);
        row_block_prefetch(&t, &s->a->d_o, 0);
        merge_partial(&t, 0);
        if (DELTA_CORRECTED)
            merge_partial(&t, 1);
        for (u32 r = 0; r < t.rows; r++)
            t.m->offset[r] = row_live(&t, r) ? score_offset(*lse_at(s, row_of(item, r))) : 0;
        deltas_read(&t);
        row_block_backward(&t);
        for (u32 r = 0; r < item->rows; r++)
            if (row_live(&t, r) && !item->split)
                *delta_at(s, row_of(item, r)) = t.m->delta[r];
    }
    prefetch_rows(&x, x.rows);
    if (!item->split)
        backward_epilogue(&t, &s->a->d_q, s->a->scale, 0);
}

static void dkv_item(const struct sequence *s, const struct abi_item *item, u8 *scratch)
{
    struct row_block t;
    struct prefetch x;
    if (backward_special(s, &s->a->transposed, item, scratch))
        return;
    row_block_open(&t, s, &s->a->transposed, item, 1, &x, scratch);
    if (!item->pieces && !item->merge[0])
        t.live = 0; /* no query sees these keys: their gradients are 0 */
    if (t.live) {
        row_block_take(&t, &s->a->k, t.row_scale, 0);
        row_block_take(&t, &s->a->v, 1, 1);
        row_block_prefetch(&t, &s->a->k, &s->a->d_k);
        row_block_prefetch(&t, &s->a->v, &s->a->d_v);
        merge_partial(&t, 0);
        merge_partial(&t, 1);
        row_block_backward(&t);
    }
    prefetch_rows(&x, x.rows);
    if (item->split)
        return;
    backward_epilogue(&t, &s->a->d_k, s->a->scale, 0);
    backward_epilogue(&t, &s->a->d_v, kept_scale(s), 1);
}

/* Runs an item of a plan, or a run of items that are all diagonals. Returns the number of items. */
static u32 backward_items(const struct sequence *s, const struct abi_plan *p,
                          const struct abi_item *item, u32 neighbours, u8 *scratch)
{
    const u32 diagonals = diagonal_run_length(p, item, neighbours);
    if (diagonals)
        diagonal_backward(s, p, item, diagonals);
    else if (p == &s->a->transposed)
        dkv_item(s, item, scratch);
    else
        dq_item(s, item, scratch);
    return diagonals ? diagonals : 1;
}

#endif
