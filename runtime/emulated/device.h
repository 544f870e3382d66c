/* SPDX-License-Identifier: Apache-2.0 */
/* The names of templates/cuda/device.h, on a CPU. The kernel's text follows this file. */
#pragma once
#include "matrix.h"

#define MASKC_EMULATION
#define DEVICE                          static inline
#define ENTRY(name)                     __attribute__((visibility("default"))) void name
#define ENTRY_OF(name, threads, blocks) ENTRY(name)
#define ARGS_STRUCT                     struct abi_args /* unless the kernel's text says another */
#define ARGS                            const ARGS_STRUCT
#define UNROLL
#define UNROLL_4
#define UNROLL_BY(n)
#define NO_UNROLL

#define THREAD                (the_block->current)
#define BLOCK                 (the_block->launch->block)
#define BLOCKS                (the_block->launch->blocks)
#define SYNC()                barrier(HERE)
#define SYNC_WARP()           meet_warp(meet_sync, NULL, HERE)
#define SHUFFLE_XOR(x, mask)  exchange_float(x, THREAD ^ (mask), HERE)
#define SHUFFLE_FROM(x, lane) exchange_float(x, lane, HERE)
#define ANY(x)                (reduce_or((x) != 0, HERE) != 0)
#define SHARED()              ((float *)the_block->shared)

struct f4;

/* One float, or four at once; f4 is the kernel's own. */
#define shared_get(p)     (watch_read(p, 4, HERE), *(const float *)(p))
#define shared_put(p, x)  (watch_write(p, 4, 0, HERE), (void)(*(float *)(p) = (x)))
#define shared_get4(p)    (watch_read(p, 16, HERE), *(const struct f4 *)(p))
#define shared_put4(p, x) (watch_write(p, 16, 0, HERE), (void)(*(struct f4 *)(p) = (x)))

DEVICE float exp2_of(float x)
{
    return the_block->launch->exp2(x);
}

DEVICE float log2_of(float x)
{
    return the_block->launch->log2(x);
}

DEVICE float reciprocal_of(float x)
{
    return 1 / x;
}

DEVICE unsigned bits_of(float x)
{
    unsigned bits;
    memcpy(&bits, &x, 4);
    return bits;
}

DEVICE float float_of(unsigned bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
