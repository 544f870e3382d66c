/* SPDX-License-Identifier: Apache-2.0 */
/* The bias X of the entries that a lane holds. */
#ifndef MASKC_CUDA_TILED_BIAS_SCORES_H
#define MASKC_CUDA_TILED_BIAS_SCORES_H
#include "cuda/tiled/run.h"

/* How many fragments the loops over X unroll. Wide sums leave few registers for more; shared rows leave fewer at
   D = 128, where only one fragment is then unrolled without dropout. */
enum {
    BIAS_TWO = STEPS < 8 || (STEPS == 8 && (DROPOUT || !SHARED_ROWS)),
    BIAS_UNROLLED = STEPS + DROPOUT <= 5 ? FRAGMENTS
                    : BIAS_TWO           ? 2
                                         : 1,
};

/* X of the lane's entries of fragment f of a column tile, 0 where its row does not see. */
DEVICE void bias_entries(struct frag_c *ret, const struct abi_args *a,
                         const struct work_item *work, const struct column_tile *ct,
                         const struct seen *seen, u32 rows_are_keys, u32 f)
{
    const u32 row = row_position(work, block_row(0));
    const u64 below = (u64)(8 * work->item->step) * (rows_are_keys ? 1 : a->forward.n);
    UNROLL
    for (u32 u = 0; u < 2; u++) {
        u32 any = sees(seen, f, u) | sees(seen, f, u + 2);
        u32 column = any ? slot_column(ct, work, 8 * f + lane_pair() + u) : 0;
        const float *at = a->bias + (rows_are_keys ? bias_at(a, work->h, column, row)
                                                   : bias_at(a, work->h, row, column));
        ret->x[u] = sees(seen, f, u) ? *at : 0;
        ret->x[u + 2] = sees(seen, f, u + 2) ? at[below] : 0;
    }
}

/* Rotates: *first, the first fragment as it is now, becomes the last. A loop over rotated fragments indexes no
   registers. */
DEVICE void scores_rotate(struct scores *s, const struct frag_c *first)
{
    UNROLL
    for (u32 f = 1; f < FRAGMENTS; f++)
        s->at[f - 1] = s->at[f];
    s->at[FRAGMENTS - 1] = *first;
}

/* The column tile of queries for which X is read. */
struct bias_place {
    const struct abi_args *a;
    const struct work_item *work;
    const struct column_tile *ct;
};

/* Scores times `scale` plus X times `x_scale`, if the bias is additive; else scores stay as they are. */
DEVICE void bias_added(struct scores *s, float scale, float x_scale, struct bias_place at,
                       const struct seen *seen)
{
    UNROLL_BY(BIAS_UNROLLED)
    for (u32 f = 0; ADD_BIAS && f < FRAGMENTS; f++) {
        struct frag_c bias, first = s->at[0];
        bias_entries(&bias, at.a, at.work, at.ct, seen, 0, f);
        UNROLL
        for (u32 k = 0; k < 4; k++)
            first.x[k] = first.x[k] * scale + bias.x[k] * x_scale;
        scores_rotate(s, &first);
    }
}

/* P or dP times X, if the bias scales probabilities. */
DEVICE void bias_scale(struct scores *s, struct bias_place at, const struct seen *seen)
{
    UNROLL_BY(BIAS_UNROLLED)
    for (u32 f = 0; SCALE_PROBS && f < FRAGMENTS; f++) {
        struct frag_c bias, first = s->at[0];
        bias_entries(&bias, at.a, at.work, at.ct, seen, 0, f);
        UNROLL
        for (u32 k = 0; k < 4; k++)
            first.x[k] *= bias.x[k];
        scores_rotate(s, &first);
    }
}

#endif
