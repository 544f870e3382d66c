/* SPDX-License-Identifier: Apache-2.0 */
/* After dX: adds up its chunks in order, then its diagonals, in an order that depends on the mask's length
   alone. */
#ifndef MASKC_CUDA_COMMON_BIAS_SUM_H
#define MASKC_CUDA_COMMON_BIAS_SUM_H
#include "cuda/common/bias.h"

enum { SUM_WARPS = THREADS / 32 };

/* Where the whole of dX is. */
DEVICE float *bias_whole(const struct abi_args *a)
{
    return a->d_bias ? a->d_bias : a->bias_part;
}

DEVICE void bias_sum_chunks(const struct abi_args *a)
{
    const u64 size = (u64)a->heads * a->forward.n * a->forward.n;
    float *to = bias_whole(a);
    NO_UNROLL
    for (u64 at = (u64)BLOCK * THREADS + THREAD; at < size; at += (u64)BLOCKS * THREADS) {
        float sum = a->bias_part[at];
        NO_UNROLL
        for (u32 c = 1; c < a->bias_chunks; c++)
            sum += a->bias_part[c * size + at];
        to[at] = sum;
    }
}

/* Offsets first .. first + 31 of a head, one for each lane; warps take rows in turn. */
DEVICE void bias_sum_lines(const struct abi_args *a, u32 h, u32 first)
{
    const u32 n = a->forward.n, offset = first + THREAD % 32, warp = THREAD / 32;
    const float *from = bias_whole(a);
    float *sums = SHARED(), sum = 0;
    NO_UNROLL
    for (u32 i = warp; i < n; i += SUM_WARPS) {
        u32 j = i + offset - (n - 1);
        if (j < n)
            sum += from[bias_at(a, h, i, j)];
    }
    SYNC();
    shared_put(sums + THREAD, sum);
    SYNC();
    if (warp || offset >= 2 * n - 1)
        return;
    sum = 0;
    UNROLL
    for (u32 w = 0; w < SUM_WARPS; w++)
        sum += shared_get(sums + 32 * w + THREAD);
    a->d_diagonal[(u64)h * (2 * n - 1) + offset] = sum;
}

ENTRY(attention_dx_sum)(ARGS a)
{
    if (a.bias_chunks > 1)
        bias_sum_chunks(&a);
}

ENTRY(attention_dx_lines)(ARGS a)
{
    const u32 each = (2 * a.forward.n - 1 + 31) / 32;
    NO_UNROLL
    for (u32 at = BLOCK; a.d_diagonal && at < a.heads * each; at += BLOCKS)
        bias_sum_lines(&a, at / each, 32 * (at % each));
}

#endif
