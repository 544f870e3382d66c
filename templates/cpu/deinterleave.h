/* SPDX-License-Identifier: Apache-2.0 */
/* The order of features where column lists meet bf16 rows. A vector of words holds two vectors of bf16: the even
   features in its lower halves, the odd ones in the upper halves. Taking them like that is cheaper than in order. So
   rows of floats are deinterleaved alike, which a dot product does not see, and sums are interleaved again. */
#ifndef MASKC_CPU_DEINTERLEAVE_H
#define MASKC_CPU_DEINTERLEAVE_H
#include "cpu/layout.h"

#if MATRIX
INLINE void vecs_deinterleave(vec *x)
{
    vec low = x[0], high = x[1];
    if (!LISTS_DEINTERLEAVED)
        return;
    x[0] = __builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26,
                                   28, 30);
    x[1] = __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27,
                                   29, 31);
}

INLINE void vecs_interleave(vec *x)
{
    vec even = x[0], odd = x[1];
    if (!LISTS_DEINTERLEAVED)
        return;
    x[0] = __builtin_shufflevector(even, odd, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22,
                                   7, 23);
    x[1] = __builtin_shufflevector(even, odd, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14,
                                   30, 15, 31);
}
#else
INLINE void vecs_deinterleave(vec *x)
{
    (void)x;
}

INLINE void vecs_interleave(vec *x)
{
    (void)x;
}
#endif

/* A row of WIDTH floats, as row_load() has those of operands. */
INLINE void row_deinterleave(float *row)
{
    for (u32 d = 0; LISTS_DEINTERLEAVED && d < WIDTH; d += 2 * LANES) {
        vec x[2] = {load(row + d), load(row + d + LANES)};
        vecs_deinterleave(x);
        store(row + d, x[0]);
        store(row + d + LANES, x[1]);
    }
}

#endif
