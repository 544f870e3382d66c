/* SPDX-License-Identifier: Apache-2.0 */
/* Scores in registers to P: softmax in base 2, with a running maximum, and tau of sparsegen by Newton's method from
   below. A lane holds parts of two rows; a quad holds both rows whole. */
#ifndef MASKC_CUDA_RESIDENT_SOFTMAX_H
#define MASKC_CUDA_RESIDENT_SOFTMAX_H
#include "cuda/common/transform.h"
#include "cuda/resident/tiles.h"

/* Column tiles whose scores are in registers at a time: up to 128 rows all that a head can have. */
enum {
    RESIDENT_ALL = RESIDENT_ROWS <= 128,
    RESIDENT_TILES_AT_ONCE = RESIDENT_ALL ? (RESIDENT_ROWS + 31) / 32 : 2,
};

/* The softmax state of the lane's row and the one 8 below: unscaled maximum, the lane's part of the sum of P. */
struct resident_rows {
    float row_max[2], sum[2];
};

/* -inf where an entry is not seen. Tiles that nobody sees are left as they are: nothing reads them. */
DEVICE void resident_apply_mask(struct resident_scores *s, const struct resident_tile *t)
{
    if (!t->any || !resident_hides(t))
        return;
    UNROLL
    for (u32 k = 0; k < 16; k++) {
        float *x = &s->at[k / 4].x[k % 4];
        *x = resident_sees(t, k / 4, k % 4) ? *x : NEGATIVE_INFINITY;
    }
}

/* Bits 0 and 1: whether the halves of tile u have an entry that some row of the warp sees. */
DEVICE u32 resident_lives(u32 lives, u32 u)
{
    return lives >> 2 * u & 3;
}

DEVICE void resident_row_max(const struct resident_scores s[RESIDENT_TILES_AT_ONCE], u32 lives,
                             float row_max[2])
{
    UNROLL
    for (u32 k = 0; k < 16 * RESIDENT_TILES_AT_ONCE; k++)
        if (resident_lives(lives, k / 16))
            row_max[k / 2 % 2] = larger(row_max[k / 2 % 2], s[k / 16].at[k / 4 % 4].x[k % 4]);
    row_max[0] = quad_max(row_max[0]);
    row_max[1] = quad_max(row_max[1]);
}

/* Masked scores to P = 2^(softmax_scale (S - row_max)). Older sums are to be multiplied by alpha. */
DEVICE void resident_online_softmax(struct resident_scores s[RESIDENT_TILES_AT_ONCE], u32 lives,
                                    float softmax_scale, struct resident_rows *r,
                                    float alpha[2])
{
    float row_max[2] = {r->row_max[0], r->row_max[1]}, shift[2];
    resident_row_max(s, lives, row_max);
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        shift[k] = row_max[k] == NEGATIVE_INFINITY ? 0 : row_max[k] * softmax_scale;
        alpha[k] = exp2_of(r->row_max[k] * softmax_scale - shift[k]);
        r->row_max[k] = row_max[k];
        r->sum[k] *= alpha[k];
    }
    UNROLL
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++) {
        if (!resident_lives(lives, u))
            continue;
        UNROLL
        for (u32 k = 0; k < 16; k++) {
            float *x = &s[u].at[k / 4].x[k % 4];
            *x = exp2_of(*x * softmax_scale - shift[k / 2 % 2]);
            r->sum[k / 2 % 2] += *x;
        }
    }
}

/* ---- sparsegen ---- */

/* Sum and count of the rows' scores, less the row maximum, above the thresholds. */
DEVICE void resident_support(const struct resident_scores s[RESIDENT_TILES_AT_ONCE], u32 lives,
                             const float row_max[2], const float threshold[2], float sum[2],
                             float count[2])
{
    sum[0] = sum[1] = count[0] = count[1] = 0;
    UNROLL
    for (u32 k = 0; k < 16 * RESIDENT_TILES_AT_ONCE; k++) {
        u32 row = k / 2 % 2;
        if (!resident_lives(lives, k / 16))
            continue;
        float z = s[k / 16].at[k / 4 % 4].x[k % 4] - row_max[row];
        sum[row] += z > threshold[row] ? z : 0;
        count[row] += z > threshold[row] ? 1 : 0;
    }
    UNROLL
    for (u32 row = 0; row < 2; row++) {
        sum[row] = quad_sum(sum[row]);
        count[row] = quad_sum(count[row]);
    }
}

/* tau of both rows. */
DEVICE void resident_tau(const struct resident_scores s[RESIDENT_TILES_AT_ONCE], u32 lives,
                         float lambda, float tau[2])
{
    float total = 1 - lambda, row_max[2] = {NEGATIVE_INFINITY, NEGATIVE_INFINITY};
    float threshold[2] = {-total, -total}, before[2] = {-1, -1};
    u32 going = 1;
    resident_row_max(s, lives, row_max);
    while (ANY(going)) {
        float sum[2], count[2];
        resident_support(s, lives, row_max, threshold, sum, count);
        going = 0;
        UNROLL
        for (u32 row = 0; row < 2; row++) {
            u32 goes = count[row] > 0 && count[row] != before[row];
            float next = goes ? (sum[row] - total) / count[row] : threshold[row];
            threshold[row] = larger(threshold[row], next);
            before[row] = count[row];
            going |= goes;
        }
    }
    tau[0] = tau_of(row_max[0], threshold[0]);
    tau[1] = tau_of(row_max[1], threshold[1]);
}

#endif
