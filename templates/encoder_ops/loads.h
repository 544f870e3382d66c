/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of the encoder's row kernels: four neighbours of a row at a time as floats, whatever they are
   in memory, and sums over a warp. A row whose length four does not divide is read one by one. */
#ifndef MASKC_ENCODER_OPS_LOADS_H
#define MASKC_ENCODER_OPS_LOADS_H
#include "abi.h"
#include "encoder_ops/args.h"
#undef ARGS_STRUCT
#define ARGS_STRUCT struct rows_args
#include "cuda/common/device.h"
#include "kernel_config.h"

enum {
    WIDTH = HIDDEN % 4 ? 1 : 4,         /* elements of a step */
    STEPS = (HIDDEN / WIDTH + 31) / 32, /* of a lane in a row */
    WIDE = DTYPE == ABI_F32             /* T is f32 */
};

struct chunk {
    float v[WIDTH];
};

DEVICE float float_of_half(u32 half)
{
    return float_of(half << 16);
}

/* To nearest even. A NaN that a GPU makes has all bits set, and would be rounded to 0. */
DEVICE u32 half_of_float(float x)
{
    const u32 bits = bits_of(x);
    return (bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

DEVICE struct f4 load4(const void *from, u64 at, u32 wide)
{
    struct f4 r;
    if (wide)
        return *(const struct f4 *)((const float *)from + at);
    const u32 *pair = (const u32 *)((const u16 *)from + at);
    const u32 low = pair[0], high = pair[1];
    r.x = float_of_half(low & 0xffff);
    r.y = float_of_half(low >> 16);
    r.z = float_of_half(high & 0xffff);
    r.w = float_of_half(high >> 16);
    return r;
}

DEVICE void store4(void *to, u64 at, u32 wide, struct f4 x)
{
    if (wide) {
        *(struct f4 *)((float *)to + at) = x;
        return;
    }
    u32 *pair = (u32 *)((u16 *)to + at);
    pair[0] = half_of_float(x.x) | half_of_float(x.y) << 16;
    pair[1] = half_of_float(x.z) | half_of_float(x.w) << 16;
}

DEVICE float load1(const void *from, u64 at, u32 wide)
{
    return wide ? ((const float *)from)[at] : float_of_half(((const u16 *)from)[at]);
}

DEVICE void store1(void *to, u64 at, u32 wide, float x)
{
    if (wide)
        ((float *)to)[at] = x;
    else
        ((u16 *)to)[at] = (u16)half_of_float(x);
}

DEVICE struct chunk load_chunk(const void *from, u64 at, u32 wide)
{
    struct chunk s;
    if (WIDTH == 1) {
        s.v[0] = load1(from, at, wide);
        return s;
    }
    struct f4 x = load4(from, at, wide);
    s.v[0] = x.x;
    s.v[1 % WIDTH] = x.y;
    s.v[2 % WIDTH] = x.z;
    s.v[3 % WIDTH] = x.w;
    return s;
}

DEVICE void store_chunk(void *to, u64 at, u32 wide, const struct chunk *s)
{
    if (WIDTH == 1) {
        store1(to, at, wide, s->v[0]);
        return;
    }
    struct f4 x;
    x.x = s->v[0];
    x.y = s->v[1 % WIDTH];
    x.z = s->v[2 % WIDTH];
    x.w = s->v[3 % WIDTH];
    store4(to, at, wide, x);
}

/* The column where a lane's step begins; HIDDEN or beyond: it has none. */
DEVICE u32 column_of(u32 step)
{
    return (step * 32 + THREAD % 32) * WIDTH;
}

/* The sum over the warp, in all lanes, in a fixed order. */
DEVICE float warp_sum(float x)
{
    UNROLL
    for (u32 mask = 16; mask; mask /= 2)
        x += SHUFFLE_XOR(x, mask);
    return x;
}

#endif
