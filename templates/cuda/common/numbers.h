/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers used by every family: constants, minima and maxima, lengths, lanes, and sums over a quad. */
#ifndef MASKC_CUDA_COMMON_NUMBERS_H
#define MASKC_CUDA_COMMON_NUMBERS_H
#include "cuda/common/device.h"
#include "cuda/common/sizes.h"

#define NEGATIVE_INFINITY float_of(0xff800000u)
#define LOG2_E            1.44269504f
#define LN_2              0.693147181f

DEVICE u32 smaller(u32 a, u32 b)
{
    return a < b ? a : b;
}

DEVICE float larger(float a, float b)
{
    return max_of(a, b);
}

/* True if a row whose P add up to `sum` saw no entry: then O is 0 and LSE -inf. False for NaN, which must stay visible
   in both. */
DEVICE u32 saw_nothing(float sum)
{
    return sum <= 0;
}

/* A length from device memory, which the host has not checked. */
DEVICE u32 clamp_length(i32 length, u32 n)
{
    return length < 0 ? 0 : smaller((u32)length, n);
}

/* Bits begin .. end - 1, end <= 32. */
DEVICE u32 bits_between(u32 begin, u32 end)
{
    u32 below_end = end < 32 ? (1u << end) - 1 : 0xffffffffu;
    return below_end & ~((1u << begin) - 1);
}

/* ---- lanes ---- */

/* The thread's place in its warp. */
DEVICE u32 lane(void)
{
    return THREAD % 32;
}

/* The thread's place in its quad: four neighbouring lanes, which hold one row together. */
DEVICE u32 quad_lane(void)
{
    return THREAD % 4;
}

DEVICE float quad_sum(float x)
{
    x += SHUFFLE_XOR(x, 1);
    return x + SHUFFLE_XOR(x, 2);
}

DEVICE float quad_max(float x)
{
    x = larger(x, SHUFFLE_XOR(x, 1));
    return larger(x, SHUFFLE_XOR(x, 2));
}

#endif
