/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass with sparsegen-lin (Laha et al. 2018): p = max(0, z - tau) / (1 - lambda), where tau makes a
   row's p sum to 1. All blocks of a row block are kept, as tau needs all scores of a row:
     Z = Q K^T * scale for all columns                     compute_qk
     tau of each row by Newton's method from below (Michelot 1986): the next tau is exact for the support of a
     tau that is too small, and never too large            row_threshold
     P = max(0, Z - tau) / (1 - lambda)                    row_sparsegen
     O = P V                                               compute_pv
   With a matrix unit blocks hold Z / softmax_scale (see row_block.h): tau and 1 - lambda are divided alike. */
#ifndef MASKC_CPU_SPARSEGEN_H
#define MASKC_CPU_SPARSEGEN_H
#include "cpu/p_rounded.h"
#include "cpu/scores.h"
#include "cpu/softmax_rows.h"
#if MATRIX
#include "cpu/matrix/threshold.h"
#else

/* Sum and count of the scores above tau, NaN among them. Scores and tau are relative to `base`, which keeps the sum exact. */
static u32 row_support(const struct row_block *t, u32 blocks, u32 r, float base, float tau,
                       float *sum)
{
    vec total = {0};
    ivec count = {0};
    for (u32 k = 0; k < blocks; k++) {
        const struct block *b = row_block_block(t, k);
        for (u32 c = 0; c < b->cols; c += LANES) {
            vec z = load(&b->score[r][c]) - splat(base);
            ivec above = ~(ivec)(z <= splat(tau));
            total += pick_or_zero(above, z);
            count -= above;
        }
    }
    u32 n = 0;
    for (u32 k = 0; k < LANES; k++)
        n += (u32)count[k];
    *sum = sum_lanes(total);
    return n;
}

/* tau - base. It starts low enough (the largest entry is in every support) and rises until the support stays the
   same. Rounding may lower tau and let entries at tau in again; a support that does not shrink ends the loop.
   Returns NaN if a score is NaN or +inf. */
static float row_threshold(const struct row_block *t, u32 blocks, u32 r, float base, float mass)
{
    float tau = -mass, sum;
    u32 last = ~0u;
    for (;;) {
        u32 count = row_support(t, blocks, r, base, tau, &sum);
        if (count >= last || !count)
            return tau;
        last = count;
        tau = (sum - mass) / (float)count;
    }
}

#endif

/* Scores to P; `tau` is relative to `base`. Subtracting the two one by one rounds less than their sum would. */
static void row_sparsegen(const struct row_block *t, u32 blocks, u32 r, float base, float tau,
                          float scale)
{
    for (u32 k = 0; k < blocks; k++) {
        struct block *b = row_block_block(t, k);
        for (u32 c = 0; c < b->cols; c += LANES) {
            vec z = load(&b->score[r][c]) - splat(base) - splat(tau);
            vec p = pick_or_zero(~(ivec)(z <= 0.0f), z * splat(scale));
            store(&b->score[r][c], p);
            p_ds_put(b, 0, r, c, p);
        }
    }
}

static u32 blocks_scores(struct row_block *t)
{
    u32 blocks = 0;
    for (; block_next(t, row_block_block(t, blocks)); blocks++)
        compute_qk(t, row_block_block(t, blocks));
    return blocks;
}

static void sparsegen_forward(struct row_block *t)
{
    const float softmax_scale = MATRIX ? t->softmax_scale : 1;
    float mass = (1 - t->s.a->lambda) / softmax_scale;
    u32 blocks = blocks_scores(t);
    for (u32 r = 0; r < t->rows; r++) {
        t->m->offset[r] = -INFINITY_F;
        t->m->total[r] = 1;
        vec m = splat(-INFINITY_F);
        for (u32 k = 0; k < blocks; k++)
            m = larger(
                m, scores_max(row_block_block(t, k)->score[r], row_block_block(t, k)->cols));
        /* A maximum passes over NaN: -inf does not imply that the row sees nothing. */
        const float most = max_lanes(m), base = most == -INFINITY_F ? 0 : most;
        float tau = row_live(t, r) ? row_threshold(t, blocks, r, base, mass) : 0;
        if (row_live(t, r) && (most > -INFINITY_F || tau != tau))
            t->m->offset[r] = (base + tau) * softmax_scale;
        row_sparsegen(t, blocks, r, base, tau, 1 / mass);
    }
    for (u32 k = 0; k < blocks; k++) {
        struct block *b = row_block_block(t, k);
        block_scale(t, b);
        if (dropping(t))
            block_drop(t, b);
        else if (BIAS == ABI_BIAS_SCALE)
            p_round(t, b);
        compute_pv(t, b);
    }
}

#endif
