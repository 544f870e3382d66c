/* SPDX-License-Identifier: Apache-2.0 */
/* The draws of dropout on vectors; see philox.h. Each lane computes one Philox call, in 64 bits of
   which the lower 32 count, because vectors multiply 32 by 32 bits that way. A word holds the
   16-bit draws of two queries. With two words in each lane a vector thus consists of 16-bit draws,
   and one comparison decides which of them are kept. */
#ifndef MASKC_CPU_DRAW_H
#define MASKC_CPU_DRAW_H
#include "cpu/vector.h"
#include "philox.h"

enum {
    CALLS = VECTOR_BYTES / 8, /* of a vector */
    TILE_CALLS = 8, /* of 16 queries and one call's keys, or 32 keys and one call's queries */
};

typedef u16 draws __attribute__((vector_size(VECTOR_BYTES)));

struct wide_philox {
    wide x, y, z, w;
};

/* Values that all draws of a launch share, and the sample and head they are for. */
struct draw {
    u64 seed;
    u32 sample, h, keep_below;
};

INLINE wide wide_splat(u64 x)
{
    return (wide){0} + x;
}

/* first, first + 1, ... */
INLINE wide wide_count(u32 first)
{
#if VECTOR_BYTES == 64
    const wide lane = {0, 1, 2, 3, 4, 5, 6, 7};
#elif VECTOR_BYTES == 32
    const wide lane = {0, 1, 2, 3};
#else
    const wide lane = {0, 1};
#endif
    return lane + (u64)first;
}

INLINE wide wide_low(wide x)
{
    return x & 0xffffffff;
}

/* 32 bits by 32. gcc does not see that this is one instruction, but on AVX-512. */
INLINE wide wide_product(wide a, u32 b)
{
#if VECTOR_BYTES == 32 && !defined __clang__
    return (wide)__builtin_ia32_pmuludq256((ivec)a, (ivec)wide_splat(b));
#elif VECTOR_BYTES == 16 && !defined __clang__
    return (wide)__builtin_ia32_pmuludq128((ivec)a, (ivec)wide_splat(b));
#else
    return wide_low(a) * b;
#endif
}

/* Calls of all lanes at counter x, y. The upper halves of what it returns mean nothing. */
INLINE struct wide_philox wide_philox(const struct draw *of, wide x, wide y)
{
    u32 key0 = (u32)of->seed, key1 = (u32)(of->seed >> 32);
    struct wide_philox c = {x, y, wide_splat(of->sample), wide_splat(of->h)};
#pragma GCC unroll 10
    for (int round = 0; round < 10; round++) {
        wide even = wide_product(c.x, PHILOX_EVEN), odd = wide_product(c.z, PHILOX_ODD);
        c.x = odd >> 32 ^ c.y ^ (u64)key0;
        c.y = odd;
        c.z = even >> 32 ^ c.w ^ (u64)key1;
        c.w = even;
        key0 += PHILOX_KEY0;
        key1 += PHILOX_KEY1;
    }
    return c;
}

/* The draws of word a and word b, four in each lane: query g and g + 8 of a, then of b. */
INLINE draws draws_of(wide a, wide b)
{
    return (draws)(wide_low(a) | b << 32);
}

/* The weight of those draws that are kept, 0 of the others. */
INLINE draws draws_kept(const struct draw *of, draws x, draws weight)
{
    return (draws)(x >= (u16)of->keep_below) & weight;
}

INLINE void wide_store(u64 *to, wide x)
{
    typedef u64 wide_at __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
    *(wide_at *)to = x;
}

/* The lower halves, to numbers that follow one another. */
INLINE void wide_narrow(u32 *to, wide x)
{
    typedef u32 narrow __attribute__((vector_size(VECTOR_BYTES / 2)));
    typedef u32 narrow_at __attribute__((vector_size(VECTOR_BYTES / 2), aligned(4), may_alias));
    *(narrow_at *)to = __builtin_convertvector(x, narrow);
}

INLINE wide wide_load(const u32 *from)
{
    typedef u32 narrow_at __attribute__((vector_size(VECTOR_BYTES / 2), aligned(4), may_alias));
    return __builtin_convertvector(*(const narrow_at *)from, wide);
}

/* Bits of 32 queries from i on, a word each: bit c is key j + c. Both are multiples of 16. */
static void draw_queries(const struct draw *of, u32 i, u32 j, u32 keep[32])
{
    const u64 one = 1 | 1 << 16 | (u64)2 << 32 | (u64)2 << 48;
    for (u32 v = 0; v < 2 * TILE_CALLS / CALLS; v++) {
        const wide x = wide_count(i / 2 + v * CALLS);
        wide kept[2];
        for (u32 half = 0; half < 2; half++) {
            draws sum = {0}, weight = (draws)wide_splat(one);
            for (u32 call = 0; call < 4; call++, weight <<= 2) {
                struct wide_philox c = wide_philox(of, x, wide_splat(j / 4 + half * 4 + call));
                sum |= draws_kept(of, draws_of(c.x, c.z), weight);
                sum |= draws_kept(of, draws_of(c.y, c.w), weight << 8);
            }
            kept[half] = (wide)sum | (wide)sum >> 32;
        }
        u32 *to = keep + v * CALLS / TILE_CALLS * 16 + v * CALLS % TILE_CALLS;
        wide_narrow(to, (kept[0] & 0xffff) | (kept[1] & 0xffff) << 16);
        wide_narrow(to + 8, (kept[0] >> 16 & 0xffff) | (kept[1] & 0xffff0000));
    }
}

/* Bits of 32 keys from j on, a word each: bit c is query i + c. */
static void draw_keys(const struct draw *of, u32 j, u32 i, u32 keep[32])
{
    const u64 one = 1 | 1 << 24 | (u64)1 << 32 | (u64)1 << 56, keys = 0x0000ffff0000ffff;
    u64 word[2][TILE_CALLS];
    for (u32 v = 0; v < TILE_CALLS / CALLS; v++) {
        const wide y = wide_count(j / 4 + v * CALLS);
        wide kept[2][2];
        for (u32 half = 0; half < 2; half++) {
            draws first = {0}, second = {0}, weight = (draws)wide_splat(one);
            for (u32 call = 0; call < 8; call++, weight <<= 1) {
                struct wide_philox c = wide_philox(of, wide_splat(i / 2 + half * 8 + call), y);
                first |= draws_kept(of, draws_of(c.x, c.z), weight);
                second |= draws_kept(of, draws_of(c.y, c.w), weight);
            }
            kept[0][half] = ((wide)first | (wide)first >> 16) & keys;
            kept[1][half] = ((wide)second | (wide)second >> 16) & keys;
        }
        for (u32 k = 0; k < 2; k++)
            wide_store(word[k] + v * CALLS, kept[k][0] | kept[k][1] << 16);
    }
    for (u32 call = 0; call < TILE_CALLS; call++)
        for (u32 k = 0; k < 2; k++) {
            u32 *to = keep + call / 4 * 16 + k * 8 + call % 4 * 2;
            to[0] = (u32)word[k][call];
            to[1] = (u32)(word[k][call] >> 32);
        }
}

/* The call that serves entry (query i, key j), lane by lane. */
INLINE struct wide_philox draw_calls(const struct draw *of, wide i, wide j)
{
    return wide_philox(of, (i >> 4) * 8 + (i & 7), (j >> 4) * 4 + (j >> 1 & 3));
}

/* All ones in the lanes whose entry is kept, of entries and the calls that serve them. */
INLINE wide draw_kept(const struct draw *of, struct wide_philox c, wide i, wide j)
{
    const wide odd = -(j & 1), upper = -(j >> 3 & 1);
    wide low = (c.x & ~upper) | (c.y & upper), high = (c.z & ~upper) | (c.w & upper);
    wide word = (low & ~odd) | (high & odd);
    return (wide)((word >> (i & 8) * 2 & 0xffff) >= (u64)of->keep_below);
}

/* Single entries, a call for each. */
INLINE wide draw_entries(const struct draw *of, wide i, wide j)
{
    return draw_kept(of, draw_calls(of, i, j), i, j);
}

/* Positions first + k by. */
struct draw_step {
    i32 first, by; /* 0 or 1 */
};

/* The lanes' positions, of k .. k + CALLS - 1. */
INLINE wide draw_positions(struct draw_step x, u32 k)
{
    const wide lane = wide_count(k) & -(u64)x.by;
    return lane + (u64)(i64)x.first;
}

/* Bits of 16 entries: queries i and keys j. With `shared` one call serves entries k and k + 8. */
INLINE u32 draw_line(const struct draw *of, struct draw_step i, struct draw_step j, int shared)
{
    u32 bits = 0;
    for (u32 k = 0; k < 8; k += CALLS) {
        const wide i0 = draw_positions(i, k), i1 = draw_positions(i, k + 8);
        const wide j0 = draw_positions(j, k), j1 = draw_positions(j, k + 8);
        struct wide_philox c = draw_calls(of, i0, j0);
        bits |= bits_of_wide(draw_kept(of, c, i0, j0)) << k;
        if (!shared)
            c = draw_calls(of, i1, j1);
        bits |= bits_of_wide(draw_kept(of, c, i1, j1)) << (8 + k);
    }
    return bits;
}

/* Bits of the keys j .. j + 31 of query i; j is a multiple of 16. */
static u32 draw_query(const struct draw *of, u32 i, u32 j)
{
    const wide x = wide_splat(i / 16 * 8 + i % 8), shift = wide_splat(i / 8 % 2 * 16);
    const u64 below = of->keep_below;
    wide kept = {0};
    for (u32 k = 0; k < TILE_CALLS; k += CALLS) {
        const wide call = wide_count(k), at = (call >> 2) * 16 + (call & 3) * 2,
                   one = wide_splat(1) << at;
        const struct wide_philox c = wide_philox(of, x, wide_splat(j / 4) + call);
        kept |= (wide)((c.x >> shift & 0xffff) >= below) & one;
        kept |= (wide)((c.z >> shift & 0xffff) >= below) & one << 1;
        kept |= (wide)((c.y >> shift & 0xffff) >= below) & one << 8;
        kept |= (wide)((c.w >> shift & 0xffff) >= below) & one << 9;
    }
    u32 bits = 0;
    for (u32 k = 0; k < CALLS; k++)
        bits |= (u32)kept[k];
    return bits;
}

/* Bits of the queries i .. i + 31 of key j; i is a multiple of 16. */
static u32 draw_key(const struct draw *of, u32 j, u32 i)
{
    const u64 below = of->keep_below;
    const wide y = wide_splat(j / 16 * 4 + j % 8 / 2);
    u32 bits = 0;
    for (u32 k = 0; k < 2 * TILE_CALLS; k += CALLS) {
        const struct wide_philox c = wide_philox(of, wide_splat(i / 2) + wide_count(k), y);
        const wide low = j & 8 ? c.y : c.x, high = j & 8 ? c.w : c.z, word = j & 1 ? high : low;
        const u32 at = k / 8 * 16 + k % 8;
        bits |= bits_of_wide((wide)((word & 0xffff) >= below)) << at;
        bits |= bits_of_wide((wide)((word >> 16 & 0xffff) >= below)) << (at + 8);
    }
    return bits;
}

#endif
