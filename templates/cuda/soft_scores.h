/* SPDX-License-Identifier: Apache-2.0 */
/* A soft mask where a warp has 16 rows: entries of the fragments that a lane holds. */
#ifndef MASKC_CUDA_SOFT_SCORES_H
#define MASKC_CUDA_SOFT_SCORES_H
#include "cuda/stream.h"

/* X of the lane's entries of a group, 0 where its row does not see. */
DEVICE void soft_entries(struct scores *ret, const struct abi_args *a, const struct job *j,
                         const struct group *g, const u32 word[2], u32 rows_are_keys)
{
    UNROLL
    for (u32 f = 0; f < FRAGMENTS; f++) {
        UNROLL
        for (u32 u = 0; u < 2; u++) {
            u32 slot = 8 * f + lane_pair() + u, seen = (word[0] | word[1]) >> slot & 1;
            u32 column = seen ? group_column(g, j, slot) : 0;
            UNROLL
            for (u32 x = u; x < 4; x += 2) {
                u32 row = job_position(j, strip_row(x >> 1));
                u64 at = rows_are_keys ? soft_at(a, j->h, column, row)
                                       : soft_at(a, j->h, row, column);
                ret->at[f].x[x] = sees(word, f, x) ? a->soft[at] : 0;
            }
        }
    }
}

/* Scores times `scale`, plus X times `unit` where it is a bias; else scores stay as they are. */
DEVICE void soft_bias(struct scores *s, float scale, float unit, const struct abi_args *a,
                      const struct job *j, const struct group *g, const u32 word[2],
                      u32 rows_are_keys)
{
    struct scores soft;
    if (!BIAS)
        return;
    soft_entries(&soft, a, j, g, word, rows_are_keys);
    UNROLL
    for (u32 k = 0; k < 4 * FRAGMENTS; k++) {
        float *x = &s->at[k / 4].x[k % 4];
        *x = *x * scale + soft.at[k / 4].x[k % 4] * unit;
    }
}

/* Probabilities, or their slopes, times X. */
DEVICE void soft_scale(struct scores *s, const struct abi_args *a, const struct job *j,
                       const struct group *g, const u32 word[2], u32 rows_are_keys)
{
    struct scores soft;
    if (!SCALED)
        return;
    soft_entries(&soft, a, j, g, word, rows_are_keys);
    UNROLL
    for (u32 k = 0; k < 4 * FRAGMENTS; k++)
        s->at[k / 4].x[k % 4] *= soft.at[k / 4].x[k % 4];
}

#endif
