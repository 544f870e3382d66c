/* SPDX-License-Identifier: Apache-2.0 */
/* What every family counts with: the smaller and the larger of two, lengths that a caller gives, and sums
   over a quad, four neighbouring lanes. */
#ifndef MASKC_CUDA_QUADS_H
#define MASKC_CUDA_QUADS_H
#include "cuda/device.h"

DEVICE u32 smaller(u32 a, u32 b)
{
    return a < b ? a : b;
}

DEVICE float larger(float a, float b)
{
    return max_of(a, b);
}

/* A length of the device's memory, which no host has checked. */
DEVICE u32 clamp_length(i32 length, u32 n)
{
    return length < 0 ? 0 : smaller((u32)length, n);
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
