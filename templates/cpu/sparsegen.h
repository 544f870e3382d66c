/* SPDX-License-Identifier: Apache-2.0 */
/* sparsegen-lin (Laha et al. 2018): p = max(0, z - tau) / (1 - lambda), tau such that they sum to
   1. tau is found by Newton's method from below (Michelot 1986): with the support of a tau that is
   too small, the next one is exact for that support, and never too large. A row's scores are all
   held, so its blocks are too. */
#ifndef MASKC_CPU_SPARSEGEN_H
#define MASKC_CPU_SPARSEGEN_H
#include "cpu/scores.h"
#include "cpu/softmax_rows.h"

/* Sum and count of what lies above tau, relative to `base`, which keeps the sum exact. */
static u32 row_support(const struct row_block *t, u32 blocks, u32 r, float base, float tau,
                       float *sum)
{
    vec total = {0};
    ivec count = {0};
    for (u32 k = 0; k < blocks; k++) {
        const struct block *b = row_block_block(t, k);
        for (u32 c = 0; c < b->cols; c += LANES) {
            vec z = load(&b->score[r][c]) - splat(base);
            ivec above = (ivec)(z > splat(tau));
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

/* tau - base: starts below (the largest entry is in every support) and rises until the support stands, or
   until what was rounded off tau lets entries in again: those are at tau, and would come and go for ever. */
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

static void row_sparsegen(const struct row_block *t, u32 blocks, u32 r, float tau, float scale)
{
    for (u32 k = 0; k < blocks; k++) {
        struct block *b = row_block_block(t, k);
        for (u32 c = 0; c < b->cols; c += LANES) {
            vec z = load(&b->score[r][c]) - splat(tau);
            store(&b->score[r][c], pick_or_zero((ivec)(z > 0.0f), z * splat(scale)));
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
    float mass = 1 - t->s.a->lambda;
    u32 blocks = blocks_scores(t);
    for (u32 r = 0; r < t->rows; r++) {
        t->m->offset[r] = -INFINITY_F;
        t->m->total[r] = 1;
        vec m = splat(-INFINITY_F);
        for (u32 k = 0; k < blocks; k++)
            m = larger(
                m, scores_max(row_block_block(t, k)->score[r], row_block_block(t, k)->cols));
        float base = max_lanes(m);
        if (!row_live(t, r) || !(base > -INFINITY_F))
            base = 0;
        else
            t->m->offset[r] = base + row_threshold(t, blocks, r, base, mass);
        row_sparsegen(t, blocks, r, t->m->offset[r] > -INFINITY_F ? t->m->offset[r] : 0,
                      1 / mass);
    }
    for (u32 k = 0; k < blocks; k++) {
        struct block *b = row_block_block(t, k);
        block_scale(t, b);
        if (dropping(t))
            block_drop(t, b);
        block_sums(t, b, (const float(*)[SCORE_STRIDE])b->score, 1, 0);
    }
}

#endif
