/* SPDX-License-Identifier: Apache-2.0 */
/* Weights rounded to 16 bits, as matrix units take them; elsewhere nothing is to be done. */
#ifndef MASKC_CPU_WEIGHTS_H
#define MASKC_CPU_WEIGHTS_H

#if AMX

/* One vector of row r at column c; 0: scores, 1: slopes. */
INLINE void weight_put(struct block *b, u32 which, u32 r, u32 c, vec x)
{
    half_store(&b->weight[which][r][c], x);
}

/* Scores of row r to 2^(gain s - m), rounded, and where they are wanted as floats too; returns their
   sum, lane by lane. */
INLINE vec row_weigh(struct block *b, u32 r, float m, float gain, int floats)
{
    vec sum = {0}, low, high;
    for (u32 c = 0; c < b->cols; c += 2 * LANES) {
        low = exp2_half(load(&b->score[r][c]) * gain - splat(m));
        high = exp2_half(load(&b->score[r][c + LANES]) * gain - splat(m));
        half_store2(&b->weight[0][r][c], low, high);
        sum += low + high;
        if (floats) {
            store(&b->score[r][c], low);
            store(&b->score[r][c + LANES], high);
        }
    }
    return sum;
}

/* All of the scores, where they changed since. */
static void weights_round(const struct strip *t, struct block *b)
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

INLINE void weights_round(const struct strip *t, struct block *b)
{
    (void)t, (void)b;
}

#endif
#endif
