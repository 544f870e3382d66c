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
