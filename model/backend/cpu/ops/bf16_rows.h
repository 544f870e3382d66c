/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of f32 to bf16 and back, in the instructions of the level that a file is compiled for. */
#pragma once
#include <stdint.h>
#include <string.h>
#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

static inline float from_bf16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounded to nearest even; NaN stays NaN. */
static inline uint16_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

/* The instruction rounds as to_bf16 does (but numbers below 2^-126 become 0), 32 values in the time of one vector
   operation or two. */
static inline void round_row(uint64_t size, const float *x, uint16_t *y)
{
    uint64_t k = 0;
#ifdef __AVX512BF16__
    for (; k + 32 <= size; k += 32) {
        __m512 low = _mm512_loadu_ps(x + k), high = _mm512_loadu_ps(x + k + 16);
        __m512bh both = _mm512_cvtne2ps_pbh(high, low);
        memcpy(y + k, &both, sizeof both);
    }
#endif
#pragma omp simd
    for (uint64_t i = k; i < size; i++)
        y[i] = to_bf16(x[i]);
}

static inline void widen_row(uint64_t size, const uint16_t *x, float *y)
{
#pragma omp simd
    for (uint64_t k = 0; k < size; k++)
        y[k] = from_bf16(x[k]);
}
