/* SPDX-License-Identifier: Apache-2.0 */
/* f16 to float and back, eight at a time, as rows are multiples of eight: by F16C where the level
   has it, by integers on SSE. Neither needs the processor to keep denormal floats. */
#ifndef MASKC_CPU_HALF_H
#define MASKC_CPU_HALF_H
#include "cpu/numbers.h"

enum { HALF_GROUP = 8 };

/* Adds the difference of the exponents' biases, twice for infinities and NaN. Below the normal
   range the number is an integer of units 2^-24: it gets a fixed exponent, whose value is then
   subtracted. */
INLINE float float_of_f16(u16 half)
{
    const u32 infinite = 0x7c00u << 13, bias = (127 - 15) << 23, least = 113u << 23;
    u32 x = (half & 0x7fffu) << 13, exponent = x & infinite;
    u32 normal = x + bias + (exponent == infinite ? bias : 0);
    float small = float_of_bits(x + least) - float_of_bits(least);
    u32 bits = exponent ? normal : bits_of_float(small);
    return float_of_bits(bits | (half & 0x8000u) << 16);
}

/* Nearest, ties to even: infinite from 65520, a NaN stays one. Adding 1/2 lets the processor round
   to units of 2^-24. */
INLINE u16 f16_of_float(float value)
{
    const u32 limit = (127u + 16) << 23, normal = 113u << 23, half = 126u << 23;
    u32 x = bits_of_float(value), sign = x >> 16 & 0x8000;
    x &= 0x7fffffff;
    u32 large = x > 0x7f800000 ? 0x7e00 : 0x7c00;
    u32 small = bits_of_float(float_of_bits(x) + 0.5f) - half;
    u32 rounded = (x - (112u << 23) + 0xfff + (x >> 13 & 1)) >> 13;
    return (u16)((x >= limit ? large : x < normal ? small : rounded) | sign);
}

#if VECTOR_BYTES >= 32
typedef u16 half_group __attribute__((vector_size(16), aligned(2), may_alias));
typedef float float_group __attribute__((vector_size(32), aligned(4), may_alias));
typedef u16 half_register __attribute__((vector_size(16)));
typedef float float_register __attribute__((vector_size(32)));

INLINE void floats_of_f16(const u16 *from, float *to)
{
    float_register x;
    half_register y = *(const half_group *)from;
    __asm__("vcvtph2ps %1, %0" : "=x"(x) : "x"(y));
    *(float_group *)to = x;
}

INLINE void f16_of_floats(const float *from, u16 *to)
{
    half_register y;
    float_register x = *(const float_group *)from;
    __asm__("vcvtps2ph $0, %1, %0" : "=x"(y) : "x"(x));
    *(half_group *)to = y;
}
#else
INLINE void floats_of_f16(const u16 *from, float *to)
{
    for (u32 k = 0; k < HALF_GROUP; k++)
        to[k] = float_of_f16(from[k]);
}

INLINE void f16_of_floats(const float *from, u16 *to)
{
    for (u32 k = 0; k < HALF_GROUP; k++)
        to[k] = f16_of_float(from[k]);
}
#endif
#endif
