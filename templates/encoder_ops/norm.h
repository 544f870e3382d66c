/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNorm of a row in a warp's registers: y = (v - mean) / sqrt(variance + eps) * gain + shift. The variance
   is the mean of (v - mean)^2: sums of v^2 would lose digits. */
#ifndef MASKC_ENCODER_OPS_NORM_H
#define MASKC_ENCODER_OPS_NORM_H
#include "encoder_ops/loads.h"

struct row {
    struct chunk step[STEPS];
};

/* 1 / sqrt(x) from the fast 2^y and log2, then one Newton step to full precision. */
DEVICE float rsqrt_of(float x)
{
    float y = exp2_of(-0.5f * log2_of(x));
    return y * (1.5f - 0.5f * x * y * y);
}

DEVICE void row_add(struct row *r, const void *from, u64 at, u32 wide)
{
    UNROLL
    for (u32 s = 0; s < STEPS; s++) {
        if (column_of(s) >= HIDDEN)
            continue;
        struct chunk x = load_chunk(from, at + column_of(s), wide);
        UNROLL
        for (u32 k = 0; k < WIDTH; k++)
            r->step[s].v[k] += x.v[k];
    }
}

DEVICE void row_clear(struct row *r)
{
    UNROLL
    for (u32 s = 0; s < STEPS; s++) {
        UNROLL
        for (u32 k = 0; k < WIDTH; k++)
            r->step[s].v[k] = 0;
    }
}

DEVICE float row_mean(const struct row *r)
{
    float sum = 0;
    UNROLL
    for (u32 s = 0; s < STEPS; s++) {
        UNROLL
        for (u32 k = 0; k < WIDTH; k++)
            sum += r->step[s].v[k]; /* 0 beyond the row */
    }
    return warp_sum(sum) / (float)HIDDEN;
}

DEVICE float row_variance(const struct row *r, float mean)
{
    float sum = 0;
    UNROLL
    for (u32 s = 0; s < STEPS; s++) {
        if (column_of(s) >= HIDDEN)
            continue;
        UNROLL
        for (u32 k = 0; k < WIDTH; k++)
            sum += (r->step[s].v[k] - mean) * (r->step[s].v[k] - mean);
    }
    return warp_sum(sum) / (float)HIDDEN;
}

/* y[at ..] = norm(r) */
DEVICE void layer_norm(const struct rows_args *a, const struct row *r, u64 at)
{
    const float mean = row_mean(r);
    const float inverse = rsqrt_of(row_variance(r, mean) + a->eps);
    UNROLL
    for (u32 s = 0; s < STEPS; s++) {
        if (column_of(s) >= HIDDEN)
            continue;
        struct chunk gain = load_chunk(a->gain, column_of(s), 1);
        struct chunk shift = load_chunk(a->shift, column_of(s), 1);
        struct chunk y;
        UNROLL
        for (u32 k = 0; k < WIDTH; k++)
            y.v[k] = (r->step[s].v[k] - mean) * inverse * gain.v[k] + shift.v[k];
        store_chunk(a->y, at + column_of(s), WIDE, &y);
    }
}

#endif
