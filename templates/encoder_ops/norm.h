/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNorm of a row that its warp holds in registers: mean first, then the squares of what differs
   from it, as sums of squares lose digits. */
#ifndef MASKC_ROWS_NORM_H
#define MASKC_ROWS_NORM_H
#include "encoder_ops/machine.h"

struct row {
    struct some step[STEPS];
};

/* 1 / sqrt(x) from the fast 2^y and log2, and one step of Newton's to full precision. */
DEVICE float inverse_root(float x)
{
    float y = exp2_of(-0.5f * log2_of(x));
    return y * (1.5f - 0.5f * x * y * y);
}

DEVICE void row_add(struct row *r, const void *from, u64 at, u32 wide)
{
    UNROLL
    for (u32 s = 0; s < STEPS; s++) {
        if (place_of(s) >= HIDDEN)
            continue;
        struct some x = load_some(from, at + place_of(s), wide);
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
        if (place_of(s) >= HIDDEN)
            continue;
        UNROLL
        for (u32 k = 0; k < WIDTH; k++)
            sum += (r->step[s].v[k] - mean) * (r->step[s].v[k] - mean);
    }
    return warp_sum(sum) / (float)HIDDEN;
}

/* y[at ..] = norm(r) */
DEVICE void row_norm(const struct rows_args *a, const struct row *r, u64 at)
{
    const float mean = row_mean(r);
    const float inverse = inverse_root(row_variance(r, mean) + a->eps);
    UNROLL
    for (u32 s = 0; s < STEPS; s++) {
        if (place_of(s) >= HIDDEN)
            continue;
        struct some gain = load_some(a->gain, place_of(s), 1);
        struct some shift = load_some(a->shift, place_of(s), 1);
        struct some y;
        UNROLL
        for (u32 k = 0; k < WIDTH; k++)
            y.v[k] = (r->step[s].v[k] - mean) * inverse * gain.v[k] + shift.v[k];
        store_some(a->y, at + place_of(s), WIDE, &y);
    }
}

#endif
