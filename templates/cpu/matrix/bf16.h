/* SPDX-License-Identifier: Apache-2.0 */
/* Vector operations of a matrix unit's kernels: P in bf16, lanes selected by bits of a word. Compilers have no common
   builtins for these instructions of AVX-512 and its bf16, so they are asm. */
#ifndef MASKC_CPU_MATRIX_BF16_H
#define MASKC_CPU_MATRIX_BF16_H
#include "cpu/vector.h"

typedef u16 half_vec __attribute__((vector_size(32)));
typedef u16 half_pair __attribute__((vector_size(64)));
typedef u16 half_at __attribute__((vector_size(32), aligned(2), may_alias));
typedef u16 half_pair_at __attribute__((vector_size(64), aligned(2), may_alias));

/* 2^f for 0 <= f <= 1; f is 1 where a row's maximum is rounded to just below itself. */
INLINE vec exp2_fraction(vec f)
{
    vec p = f * 0.0135557484f + 0.0520323664f;
    p = p * f + 0.241379768f;
    p = p * f + 0.693032146f;
    return p * f + 1.0f;
}

/* 2^x for any x, 0 for -inf. Relative error below 3.5e-6 and none for integers, so that p of a row's maximum is 1:
   x = floor + f, and 2^f by a polynomial that is exact at 0 and at 1. */
INLINE vec exp2_half(vec x)
{
    vec f, ret;
    __asm__("vreduceps $1, %1, %0" : "=v"(f) : "v"(x));
    vec p = exp2_fraction(f);
    __asm__("vscalefps %2, %1, %0" : "=v"(ret) : "v"(p), "v"(x));
    return ret;
}

/* The same, and 0 where the lane's bit is not set. */
INLINE vec exp2_seen(vec x, u32 bits)
{
    vec f, ret;
    __asm__("vreduceps $1, %1, %0" : "=v"(f) : "v"(x));
    vec p = exp2_fraction(f);
    __asm__("vscalefps %2, %1, %0%{%3%}%{z%}" : "=v"(ret) : "v"(p), "v"(x), "Yk"((u16)bits));
    return ret;
}

/* -inf where the lane's bit is not set. */
INLINE vec lanes_seen(vec x, u32 bits)
{
    vec ret;
    __asm__("vblendmps %1, %2, %0%{%3%}"
            : "=v"(ret)
            : "v"(x), "v"(splat(-INFINITY_F)), "Yk"((u16)bits));
    return ret;
}

/* -inf to those of 16 floats whose bit is set. */
INLINE void lanes_exclude(float *to, u32 bits)
{
    __asm__("vmovups %1, %0%{%2%}"
            : "+m"(*(vec_at *)to)
            : "v"(splat(-INFINITY_F)), "Yk"((u16)bits));
}

/* Bit k: a is larger than b in lane k. */
INLINE u32 lanes_larger(vec a, vec b)
{
    u32 bits;
    __asm__("vcmpltps %1, %2, %%k1; kmovw %%k1, %0" : "=r"(bits) : "v"(a), "v"(b) : "k1");
    return bits;
}

/* Bit k: a is larger than b in lane k, or one of the two is NaN. */
INLINE u32 lanes_not_below(vec a, vec b)
{
    u32 bits;
    __asm__("vcmpnleps %2, %1, %%k1; kmovw %%k1, %0" : "=r"(bits) : "v"(a), "v"(b) : "k1");
    return bits;
}

/* True if all lanes of these words are equal. */
INLINE int words_equal(const u32 *a, const u32 *b)
{
    u32 bits;
    __asm__("vpcmpneqd %1, %2, %%k1; kmovw %%k1, %0"
            : "=r"(bits)
            : "v"(*(const uvec_at *)a), "v"(*(const uvec_at *)b)
            : "k1");
    return !bits;
}

/* The lanes whose bit is set, moved to the front; 0 behind them. */
INLINE vec lanes_packed(vec x, u32 bits)
{
    vec ret;
    __asm__("vcompressps %1, %0%{%2%}%{z%}" : "=v"(ret) : "v"(x), "Yk"((u16)bits));
    return ret;
}

INLINE vec half_load(const u16 *from)
{
    return (vec)(__builtin_convertvector(*(const half_at *)from, uvec) << 16);
}

/* To bf16: nearest, ties to even. */
INLINE void half_store(u16 *to, vec x)
{
    half_vec y;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(y) : "v"(x));
    *(half_at *)to = y;
}

INLINE void half_store2(u16 *to, vec first, vec second)
{
    half_pair y;
    __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(y) : "v"(first), "v"(second));
    *(half_pair_at *)to = y;
}

/* The same, and 0 where the number's bit is not set. */
INLINE void half_store2_kept(u16 *to, vec first, vec second, u32 bits)
{
    half_pair y;
    __asm__("vcvtne2ps2bf16 %1, %2, %0%{%3%}%{z%}"
            : "=v"(y)
            : "v"(first), "v"(second), "Yk"(bits));
    *(half_pair_at *)to = y;
}

/* x where the lane's bit is set, else 0. */
INLINE vec lanes_zeroed(vec x, u32 bits)
{
    vec ret;
    __asm__("vmovaps %1, %0%{%2%}%{z%}" : "=v"(ret) : "v"(x), "Yk"((u16)bits));
    return ret;
}

/* Past the caches; `to` is a whole line. */
INLINE void half_stream2(u16 *to, vec first, vec second)
{
    half_pair y;
    __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(y) : "v"(first), "v"(second));
    __asm__ volatile("vmovntdq %1, %0" : "=m"(*(half_pair *)to) : "v"(y));
}

INLINE void half_put2(u16 *to, vec first, vec second, int streamed)
{
    if (streamed)
        half_stream2(to, first, second);
    else
        half_store2(to, first, second);
}

#endif
