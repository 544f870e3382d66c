/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a softmax on one row of scores. */
#ifndef MASKC_CPU_SOFTMAX_ROWS_H
#define MASKC_CPU_SOFTMAX_ROWS_H
#include "cpu/layout.h"
#include "cpu/numbers.h"

INLINE vec scores_max(const float *score, u32 cols)
{
    vec m = load(score);
    for (u32 c = LANES; c < cols; c += LANES)
        m = larger(m, load(score + c));
    return m;
}

/* Scores to p = 2^(s - m). Returns the sum of p, lane by lane. */
INLINE vec row_exp2(float *score, u32 cols, float m)
{
    vec sum = {0};
    for (u32 c = 0; c < cols; c += LANES) {
        vec p = exp2_vec(load(score + c) - splat(m));
        store(score + c, p);
        sum += p;
    }
    return sum;
}

static void sums_scale(float *sums, float scale)
{
    for (u32 d = 0; d < WIDTH; d += LANES)
        store(sums + d, load(sums + d) * splat(scale));
}

#endif
