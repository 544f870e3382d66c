/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions and bf16, without a C library. */
#ifndef MASKC_CPU_NUMBERS_H
#define MASKC_CPU_NUMBERS_H
#include "cpu/vector.h"

#define LOG2_E 1.44269504088896341f
#define LN_2   0.69314718055994531f

INLINE float float_of_bits(u32 bits)
{
    union {
        u32 bits;
        float value;
    } x = {bits};
    return x.value;
}

INLINE u32 bits_of_float(float value)
{
    union {
        float value;
        u32 bits;
    } x = {value};
    return x.bits;
}

/* 2^x for x < 128, relative error below 3e-7 (the minimax polynomial's own is 7.5e-8 on
   -1/2 .. 1/2); 0 below 2^-125, so that exp2(-inf) = 0; NaN stays NaN, as the last step is a product. Adding
   1.5 * 2^23 + 126 rounds x to an integer n and leaves n + 126, the exponent of 2^(n - 1), in the low bits; the
   polynomial is twice 2^f. */
INLINE vec exp2_vec(vec x)
{
    const vec magic = splat(12582912.0f + 126);
    vec t = x + magic;
    vec f = x - (t - magic);
    vec p = f * (2 * 1.327647198e-03f) + 2 * 9.675541334e-03f;
    p = p * f + 2 * 5.550713274e-02f;
    p = p * f + 2 * 2.402211972e-01f;
    p = p * f + 2 * 6.931469671e-01f;
    p = p * f + 2 * 1.000000072e+00f;
    vec scaled = p * (vec)((uvec)t << 23);
    return (vec)((ivec)scaled & ~(ivec)(x < -125.0f));
}

INLINE float exp2_one(float x)
{
    return exp2_vec(splat(x))[0];
}

/* ln x for normal x > 0, absolute error below 2e-7 + 2e-7 |ln x|: x = 2^e m with m near 1, and
   ln m = 2 atanh(s), s = (m - 1) / (m + 1). NaN for NaN, by its last term. */
INLINE vec natural_log(vec x)
{
    const u32 root = 0x3f3504f3; /* sqrt(1/2) */
    ivec e = (ivec)((uvec)x - root) >> 23;
    vec m = (vec)((uvec)x - ((uvec)e << 23));
    vec s = (m - 1.0f) / (m + 1.0f), s2 = s * s;
    vec series = s2 * (1.0f / 9) + 1.0f / 7;
    series = series * s2 + 1.0f / 5;
    series = series * s2 + 1.0f / 3;
    series = series * s2 + 1.0f;
    return __builtin_convertvector(e, vec) * LN_2 + 2.0f * s * series + 0.0f * x;
}

INLINE float float_of_bf16(u16 x)
{
    return float_of_bits((u32)x << 16);
}

/* Nearest, ties to even; a NaN stays one. */
INLINE u16 bf16_of_float(float value)
{
    u32 x = bits_of_float(value);
    u32 rounded = (x + 0x7fff + (x >> 16 & 1)) >> 16;
    return (u16)((x & 0x7fffffff) > 0x7f800000 ? (x >> 16 | 0x40) : rounded);
}

#endif
