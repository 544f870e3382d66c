/* SPDX-License-Identifier: Apache-2.0 */
/* exp in f32 as loops over vectors can use it: no branch, no call. */
#pragma once
#include <stdint.h>
#include <string.h>

/* e^x for |x| <= 87, with a relative error of at most 1.2e-7; NaN stays NaN. 2^n e^r: the sum with `magic` rounds to
   the integer n, and leaves n + 128, the exponent of 2^(n + 1), in the low bits. The polynomial is half of e^r; it has the
   least error on |r| <= ln(2) / 2. */
static inline float exp_lane(float x)
{
    const float magic = 12582912.0f + 128, log2_e = 1.44269504f, ln2_high = 0.693359375f,
                ln2_low = -2.12194440e-4f;
    float shifted = x * log2_e + magic, n = shifted - magic;
    float r = (x - n * ln2_high) - n * ln2_low, p = 0.5f * 0.00138368085f;
    p = p * r + 0.5f * 0.00837484561f;
    p = p * r + 0.5f * 0.0416682288f;
    p = p * r + 0.5f * 0.166664198f;
    p = p * r + 0.5f * 0.499999911f;
    p = p * r + 0.5f;
    p = p * r + 0.5f;
    uint32_t exponent;
    float power;
    memcpy(&exponent, &shifted, sizeof exponent);
    exponent <<= 23;
    memcpy(&power, &exponent, sizeof power);
    return p * power;
}

static inline float clamp_lane(float x, float most)
{
    float below = x > most ? most : x;
    return below < -most ? -most : below;
}
