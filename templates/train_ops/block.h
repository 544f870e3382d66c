/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and maxima over a block, in a fixed order: of each warp, then of the warps by number. */
#ifndef MASKC_TRAIN_OPS_BLOCK_H
#define MASKC_TRAIN_OPS_BLOCK_H
#include "encoder_ops/activation.h"
#include "encoder_ops/norm.h"
#include "train_ops/args.h"
#undef ARGS_STRUCT
#define ARGS_STRUCT struct train_args

enum { WARPS = TRAIN_THREADS / 32 };

/* Returns the sum over all threads to each of them. Shared memory is free again when it returns. */
DEVICE float block_sum(float x)
{
    float *of_warp = SHARED(), ret = 0;
    x = warp_sum(x);
    if (THREAD % 32 == 0)
        shared_put(of_warp + THREAD / 32, x);
    SYNC();
    UNROLL
    for (u32 w = 0; w < WARPS; w++)
        ret += shared_get(of_warp + w);
    SYNC();
    return ret;
}

/* The larger; NaN is passed over. */
DEVICE float larger(float x, float than)
{
    return x > than ? x : than;
}

DEVICE float block_largest(float x)
{
    float *of_warp = SHARED(), ret;
    UNROLL
    for (u32 mask = 16; mask; mask /= 2)
        x = larger(SHUFFLE_XOR(x, mask), x);
    if (THREAD % 32 == 0)
        shared_put(of_warp + THREAD / 32, x);
    SYNC();
    ret = shared_get(of_warp);
    UNROLL
    for (u32 w = 1; w < WARPS; w++)
        ret = larger(shared_get(of_warp + w), ret);
    SYNC();
    return ret;
}

#endif
