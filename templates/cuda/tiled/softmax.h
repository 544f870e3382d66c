/* SPDX-License-Identifier: Apache-2.0 */
/* Online softmax of the forward pass: scores of a column tile to P, and the state of the warp's rows. */
#ifndef MASKC_CUDA_TILED_SOFTMAX_H
#define MASKC_CUDA_TILED_SOFTMAX_H
#include "cuda/common/bias.h"
#include "cuda/tiled/products.h"

/* Largest excess, to base 2, of scores over the maximum that is subtracted from them. P is then at
   most 2^8, which halves hold, and O, the sum of P and the maximum remain consistent. Few tiles
   rescale. Halves that hold P times a bias or the factor of dropout need their whole range for these. */
enum { MAX_EXCESS = DTYPE == ABI_F16 && (SCALE_PROBS || DROPOUT) ? 0 : 8 };

/* State of the online softmax of rows g and g + 8 of a row tile. */
struct softmax {
    float row_max
        [2]; /* what is subtracted, before scaling: the maximum of some first tiles; the same in a quad */
    float limit[2]; /* MAX_EXCESS above it */
    float sum[2];   /* of P; the lane's part */
};

/* The largest of the lane's scores of row g (which 0) or g + 8 (1). */
DEVICE float lane_max(const struct scores *s, u32 which)
{
    float ret = larger(s->at[0].x[2 * which], s->at[0].x[2 * which + 1]);
    UNROLL
    for (u32 f = 1; f < FRAGMENTS; f++)
        ret = larger(ret, larger(s->at[f].x[2 * which], s->at[f].x[2 * which + 1]));
    return ret;
}

/* The scaled row maximum to subtract from scores; 0 for a row that has seen nothing, so that inf - inf never
   occurs. */
DEVICE float finite_max(float row_max, float scale)
{
    return row_max == NEGATIVE_INFINITY ? 0 : row_max * scale;
}

/* Raises the maxima of a row tile and multiplies O and the sum of P by alpha. The least scale (2^-149) makes the limit
   infinite. */
DEVICE void softmax_rescale(struct softmax *state, const float own[2], float scale,
                            struct sums *o)
{
    float alpha[2];
    const float excess = MAX_EXCESS ? MAX_EXCESS * reciprocal_of(scale) : 0;
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        const float row_max = larger(state->row_max[k], quad_max(own[k]));
        alpha[k] = exp2_of(state->row_max[k] * scale - finite_max(row_max, scale));
        state->row_max[k] = row_max;
        state->limit[k] = row_max == NEGATIVE_INFINITY ? row_max : row_max + excess;
        state->sum[k] *= alpha[k];
    }
    sums_scale(o, alpha[0], alpha[1]);
}

/* Rescales if a score of any row of the warp exceeds its limit. Lanes compare their own scores, so that most tiles exchange
   none. */
DEVICE void softmax_follow(struct softmax state[ROW_TILES], const struct scores s[ROW_TILES],
                           float scale, struct sums o[ROW_TILES])
{
    float own[ROW_TILES][2];
    u32 exceeds = 0;
    UNROLL
    for (u32 k = 0; k < LANE_ROWS; k++) {
        own[k / 2][k % 2] = lane_max(&s[k / 2], k % 2);
        exceeds |= own[k / 2][k % 2] > state[k / 2].limit[k % 2];
    }
    if (!ANY(exceeds))
        return;
    UNROLL
    for (u32 m = 0; m < ROW_TILES; m++)
        softmax_rescale(&state[m], own[m], scale, &o[m]);
}

/* Scores of a row tile to P. `live`: columns that some row sees. */
DEVICE void softmax_p(struct softmax *state, struct scores *s, u32 live, float scale)
{
    const float shift[2] = {finite_max(state->row_max[0], scale),
                            finite_max(state->row_max[1], scale)};
    UNROLL
    for (u32 f = 0; f < FRAGMENTS; f++) {
        UNROLL
        for (u32 x = 0; x < 4; x++) {
            float *at = &s->at[f].x[x];
            *at = has_fragment(live, f) ? exp2_of(*at * scale - shift[x >> 1]) : 0;
            state->sum[x >> 1] += *at;
        }
    }
}

/* Scores to P; O and the softmax state follow a new maximum. */
DEVICE void online_softmax(struct softmax state[ROW_TILES], struct scores s[ROW_TILES],
                           u64 live, float scale, struct sums o[ROW_TILES])
{
    softmax_follow(state, s, scale, o);
    UNROLL
    for (u32 m = 0; m < ROW_TILES; m++)
        softmax_p(&state[m], &s[m], live_of(live, m), scale);
}

#endif
