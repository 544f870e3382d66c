/* SPDX-License-Identifier: Apache-2.0 */
/* P and dS in bf16, as matrix units take them. Without one there is nothing to do. */
#ifndef MASKC_CPU_P_ROUNDED_H
#define MASKC_CPU_P_ROUNDED_H
#include "cpu/row_block.h"

#if MATRIX

/* One vector of row r at column c, of P (0) or dS (1). */
INLINE void p_ds_put(struct block *b, u32 which, u32 r, u32 c, vec x)
{
    half_store(&b->p_ds[which][r][c], x);
}

/* Two vectors of P; `keep`: the bits of those that dropout keeps, or null. */
INLINE void pair_store(u16 *p, vec low, vec high, const u32 *keep)
{
    if (keep)
        half_store2_kept(p, low, high, *keep);
    else
        half_store2(p, low, high);
}

/* Two vectors of scores to P in bf16, and as floats too if asked for. */
INLINE vec pair_exp2(float *score, u16 *p, vec base, vec softmax_scale, int floats)
{
    vec low = exp2_half(load(score) * softmax_scale - base);
    vec high = exp2_half(load(score + LANES) * softmax_scale - base);
    half_store2(p, low, high);
    if (floats) {
        store(score, low);
        store(score + LANES, high);
    }
    return low + high;
}

/* The same with dropout. */
INLINE vec pair_exp2_kept(const float *score, u16 *p, vec base, vec softmax_scale, u32 keep)
{
    vec low = exp2_half(load(score) * softmax_scale - base);
    vec high = exp2_half(load(score + LANES) * softmax_scale - base);
    half_store2_kept(p, low, high, keep);
    return low + high;
}

/* The same where the bit is set; 0 elsewhere, whatever the scores are. */
INLINE vec pair_exp2_seen(const float *score, u16 *p, vec base, vec softmax_scale, u32 bits,
                          const u32 *keep)
{
    vec low = exp2_seen(load(score) * softmax_scale - base, bits);
    vec high = exp2_seen(load(score + LANES) * softmax_scale - base, bits >> LANES);
    pair_store(p, low, high, keep);
    return low + high;
}

/* Scores of row r to p = 2^(softmax_scale s - m) in bf16. Returns the sum of p, lane by lane. */
INLINE vec row_exp2_rounded(struct block *b, u32 r, float m, float softmax_scale, int floats)
{
    enum { PAIR_COLS = 2 * LANES };
    vec even = {0}, odd = {0};
    float *score = b->score[r];
    u16 *p = b->p_ds[0][r];
    const u32 cols = b->cols;
    u32 c = 0;
    for (; c + 2 * PAIR_COLS <= cols; c += 2 * PAIR_COLS) {
        even += pair_exp2(score + c, p + c, splat(m), splat(softmax_scale), floats);
        odd += pair_exp2(score + c + PAIR_COLS, p + c + PAIR_COLS, splat(m),
                         splat(softmax_scale), floats);
    }
    for (; c < cols; c += PAIR_COLS)
        even += pair_exp2(score + c, p + c, splat(m), splat(softmax_scale), floats);
    return even + odd;
}

/* P in bf16 again, after a bias changed P. Lists take floats. */
static void p_round(const struct row_block *t, struct block *b)
{
    u32 panels = 0;
    for (u32 k = 0; k < b->tiles; k++)
        panels |= b->tile[k].kind == TILE_PANEL || b->tile[k].kind == TILE_GATHERED;
    for (u32 r = 0; panels && r < t->rows; r++)
        for (u32 c = 0; c < b->cols; c += LANES)
            p_ds_put(b, 0, r, c, load(&b->score[r][c]));
}

#else

INLINE void p_ds_put(struct block *b, u32 which, u32 r, u32 c, vec x)
{
    (void)b, (void)which, (void)r, (void)c, (void)x;
}

INLINE void p_round(const struct row_block *t, struct block *b)
{
    (void)t, (void)b;
}

#endif
#endif
