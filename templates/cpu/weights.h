/* SPDX-License-Identifier: Apache-2.0 */
/* Weights rounded to 16 bits, as matrix units take them; elsewhere nothing is to be done. */
#ifndef MASKC_CPU_WEIGHTS_H
#define MASKC_CPU_WEIGHTS_H

#if MATRIX

/* One vector of row r at column c; 0: scores, 1: slopes. */
INLINE void weight_put(struct block *b, u32 which, u32 r, u32 c, vec x)
{
    half_store(&b->weight[which][r][c], x);
}

/* Two vectors of scores to weights, rounded, and where they are wanted as floats too. */
INLINE vec pair_weigh(float *score, u16 *weight, vec base, vec gain, int floats)
{
    vec low = exp2_half(load(score) * gain - base);
    vec high = exp2_half(load(score + LANES) * gain - base);
    half_store2(weight, low, high);
    if (floats) {
        store(score, low);
        store(score + LANES, high);
    }
    return low + high;
}

/* Those of them whose bit is set; 0 for the others, whatever their scores are. */
INLINE vec pair_weigh_seen(const float *score, u16 *weight, vec base, vec gain, u32 bits)
{
    vec low = exp2_seen(load(score) * gain - base, bits);
    vec high = exp2_seen(load(score + LANES) * gain - base, bits >> LANES);
    half_store2(weight, low, high);
    return low + high;
}

/* Scores of row r to 2^(gain s - m), rounded; returns their sum, lane by lane. */
INLINE vec row_weigh(struct block *b, u32 r, float m, float gain, int floats)
{
    enum { PAIR_COLS = 2 * LANES };
    vec even = {0}, odd = {0};
    float *score = b->score[r];
    u16 *weight = b->weight[0][r];
    const u32 cols = b->cols;
    u32 c = 0;
    for (; c + 2 * PAIR_COLS <= cols; c += 2 * PAIR_COLS) {
        even += pair_weigh(score + c, weight + c, splat(m), splat(gain), floats);
        odd += pair_weigh(score + c + PAIR_COLS, weight + c + PAIR_COLS, splat(m), splat(gain),
                          floats);
    }
    for (; c < cols; c += PAIR_COLS)
        even += pair_weigh(score + c, weight + c, splat(m), splat(gain), floats);
    return even + odd;
}

/* All of the scores, where they changed since. */
static void weights_round(const struct row_block *t, struct block *b)
{
    for (u32 r = 0; r < t->rows; r++)
        for (u32 c = 0; c < b->cols; c += LANES)
            weight_put(b, 0, r, c, load(&b->score[r][c]));
}

#else

INLINE void weight_put(struct block *b, u32 which, u32 r, u32 c, vec x)
{
    (void)b, (void)which, (void)r, (void)c, (void)x;
}

INLINE void weights_round(const struct row_block *t, struct block *b)
{
    (void)t, (void)b;
}

#endif
#endif
