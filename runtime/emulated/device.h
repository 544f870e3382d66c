/* SPDX-License-Identifier: Apache-2.0 */
/* The names of templates/cuda/common/device.h and matrix.h, on a CPU. The kernel's text follows this file. */
#pragma once
#include "machine.h"
#include <string.h>

/* The block that this thread of the system works on. */
static __thread const struct emulation_face *the_block
    __attribute__((tls_model("initial-exec")));
#define MACHINE (the_block->machine)

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
#define BLOCK                 (the_block->block)
#define BLOCKS                (the_block->blocks)
#define WAVE                  (the_block->wave)
#define WAVES                 (the_block->waves)
#define SYNC()                MACHINE->barrier(HERE)
#define SYNC_WARP()           MACHINE->sync_warp(HERE)
#define SHUFFLE_XOR(x, mask)  MACHINE->exchange(x, THREAD ^ (mask), HERE)
#define SHUFFLE_FROM(x, lane) MACHINE->exchange(x, lane, HERE)
#define ANY(x)                (MACHINE->reduce_or((x) != 0, HERE) != 0)
#define SHARED()              ((float *)the_block->shared)

struct f4;

/* One float, or four at once; f4 is the kernel's own. */
#define shared_get(p)     (MACHINE->watch_read(p, 4, HERE), *(const float *)(p))
#define shared_put(p, x)  (MACHINE->watch_write(p, 4, HERE), (void)(*(float *)(p) = (x)))
#define shared_get4(p)    (MACHINE->watch_read(p, 16, HERE), *(const struct f4 *)(p))
#define shared_put4(p, x) (MACHINE->watch_write(p, 16, HERE), (void)(*(struct f4 *)(p) = (x)))

/* Global memory by which threads of a block hand something on. */
#define global_get(p)    (MACHINE->watch_global_read(p, HERE), *(const float *)(p))
#define global_put(p, x) (MACHINE->watch_global_write(p), (void)(*(float *)(p) = (x)))

/* ---- matrix.h ---- */

/* clang-format off */
#define SHARED_HALF() ((half_t *)the_block->shared)

#define shared_get_u32(p)      (MACHINE->watch_read(p, 4, HERE), *(const u32 *)(p))
#define shared_put_u32(p, x)   (MACHINE->watch_write(p, 4, HERE), (void)(*(u32 *)(p) = (x)))
#define shared_get_u32x2(p)    (MACHINE->watch_read(p, 8, HERE), *(const struct u32x2 *)(p))
#define shared_put_u32x2(p, x) (MACHINE->watch_write(p, 8, HERE), (void)(*(struct u32x2 *)(p) = (x)))
#define shared_get_u32x4(p)    (MACHINE->watch_read(p, 16, HERE), *(const struct u32x4 *)(p))
#define shared_put_u32x4(p, x) (MACHINE->watch_write(p, 16, HERE), (void)(*(struct u32x4 *)(p) = (x)))

#define mma_16816(c, a, b0, b1) MACHINE->multiply((c)->x, (a)->x, b0, b1, IS_F16, HERE)
#define mma_1688(c, a, b0, b1) MACHINE->multiply_tf32((c)->x, (a)->x, b0, b1, HERE)
#define tf32_of(x)             MACHINE->tf32_from(x)
#define shared_address(p)      ((const u8 *)(p))
#define one_address(p)         shared_address(p)
#define shared_flip(at, bytes) (the_block->shared + ((u32)((at) - the_block->shared) ^ (bytes)))
#define matrix_load4(r, row)    MACHINE->load_matrices(r, row, 0, HERE)
#define matrix_load4_transposed(r, row) MACHINE->load_matrices(r, row, 1, HERE)
#define copy_async_16(to, from, there) MACHINE->start_copy(to, from, there, HERE)
#define copy_async_commit()     MACHINE->commit_copies()
#define COPY_ASYNC_WAIT(n)      MACHINE->await_copies(n)
#define warp_or(x)              MACHINE->reduce_or(x, HERE)
#define half_pack(low, high)    (MACHINE->half_from(low, IS_F16) | MACHINE->half_from(high, IS_F16) << 16)
#define half_low(x)             MACHINE->float_from((x) & 0xffff, IS_F16)
#define half_high(x)            MACHINE->float_from((x) >> 16, IS_F16)
#define f16_pack(low, high)     (MACHINE->half_from(low, 1) | MACHINE->half_from(high, 1) << 16)
#define f16_low(x)              MACHINE->float_from((x) & 0xffff, 1)
#define f16_high(x)             MACHINE->float_from((x) >> 16, 1)
#define IS_F16                  (DTYPE == ABI_F16) /* both are the kernel's own */
/* clang-format on */

/* ---- arithmetic ---- */

DEVICE float exp2_of(float x)
{
    return MACHINE->exp2(x);
}

DEVICE float log2_of(float x)
{
    return MACHINE->log2(x);
}

DEVICE float reciprocal_of(float x)
{
    return 1 / x;
}

DEVICE float max_of(float a, float b)
{
    return a > b || a != a ? a : b;
}

DEVICE unsigned one_value(unsigned x)
{
    return x;
}

DEVICE const unsigned char *one_place(const unsigned char *p)
{
    return p;
}

DEVICE unsigned opt_barrier(unsigned x)
{
    return x;
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

DEVICE float magnitude_of(float x)
{
    return float_of(bits_of(x) & 0x7fffffffu);
}

#include "device_hopper.h"
