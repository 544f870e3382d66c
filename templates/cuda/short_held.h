/* SPDX-License-Identifier: Apache-2.0 */
/* Slopes of a strip kept in registers from the first turn to the second, as 16-bit numbers of a unit:
   eight of a row at a tile, all that the lane has of it, share a power of two, of which they have 14
   bits and the sign. The largest is thus kept to 2^-15 of itself, where a bf16 would lose 2^-9: enough
   for a small correction not to be lost, in half the registers of floats. */
#ifndef MASKC_CUDA_SHORT_HELD_H
#define MASKC_CUDA_SHORT_HELD_H
#include "cuda/short_softmax.h"
#include "cuda/short_square.h"

enum {
    SHORT_UNIT_BITS = 14,
    SHORT_UNIT_NONE = 0x8000, /* sparsegen: not of the support */
};

/* 1.5 2^23 and 2^23 + 2^15: a whole number added to these stands in their last bits. */
#define SHORT_WHOLE_NUMBER  float_of(0x4b400000u)
#define SHORT_WHOLE_SHIFTED float_of(0x4b008000u)

/* Scores that are there at a time: of a tile, or where all that is held leaves no room, half of it. */
enum {
    SHORT_FULL = SHORT_TILES > 4,
    SHORT_SPAN = SHORT_FULL ? 2 : 4, /* fragments */
    SHORT_PAIRS = 2 * SHORT_SPAN,    /* of neighbouring entries, of a lane */
    SHORT_PARTS = 4 / SHORT_SPAN,    /* of a tile */
    SHORT_SLOPES = SHORT_PARTS * SHORT_TILES,
};

/* One of these: pair k has entries 2 k and 2 k + 1 of the lane; a byte for each row, the unit's exponent. */
struct short_slope {
    u32 pair[SHORT_PAIRS], units;
};

/* A strip's; two times two units in a word. `missing`: what delta is more than c was. */
struct short_held {
    u32 pair[SHORT_SLOPES][SHORT_PAIRS], units[(SHORT_SLOPES + 1) / 2];
    float missing[2];
};

/* 2^(x - 127). */
DEVICE float short_power(u32 x)
{
    return float_of(x << 23);
}

/* The exponent of a row's largest entry, but no smaller than a unit can be told with. */
DEVICE u32 short_exponent(const struct short_scores *w, u32 row)
{
    float most = 0;
    UNROLL
    for (u32 k = 0; k < SHORT_PAIRS; k++) {
        float x = w->at[k / 2].x[2 * row + k % 2];
        most = short_larger(most, float_of(bits_of(x) & 0x7fffffffu));
    }
    u32 exponent = bits_of(most) >> 23;
    return exponent > SHORT_UNIT_BITS ? exponent : SHORT_UNIT_BITS;
}

/* Where sparsegen's P is 0 there is nothing. What is not finite is lost here, not in the sum of the
   row, by which the second turn finds it again. */
DEVICE void short_hold(struct short_slope *ret, const struct short_scores *w,
                       const struct short_scores *p)
{
    u32 exponent[2] = {short_exponent(w, 0), short_exponent(w, 1)};
    ret->units = exponent[0] | exponent[1] << 8;
    UNROLL
    for (u32 k = 0; k < SHORT_PAIRS; k++) {
        float by = short_power(253 + SHORT_UNIT_BITS - exponent[k % 2]);
        u32 bits[2];
        UNROLL
        for (u32 e = 0; e < 2; e++) {
            u32 at = 2 * (k % 2) + e;
            bits[e] = bits_of(w->at[k / 2].x[at] * by + SHORT_WHOLE_NUMBER);
            if (TRANSFORM == ABI_SPARSEGEN && p->at[k / 2].x[at] == 0)
                bits[e] = SHORT_UNIT_NONE;
        }
        ret->pair[k] = (bits[0] & 0xffffu) | bits[1] << 16;
    }
}

/* dS of pair k, P of which is `p`: of softmax, what is held less missing P; of sparsegen less
   `missing`, on the support. */
DEVICE u32 short_release(const struct short_slope *held, u32 k, u32 p, float missing)
{
    const u32 row = k % 2, shifted = held->pair[k] ^ 0x80008000u;
    const u32 number[2] = {shifted & 0xffffu, shifted >> 16};
    const float weight[2] = {half_low(p & 0x7fff7fffu), half_high(p & 0x7fff7fffu)};
    const float unit = short_power((held->units >> 8 * row & 0xff) - (SHORT_UNIT_BITS - 1));
    float ds[2];
    UNROLL
    for (u32 e = 0; e < 2; e++) {
        float x = (float_of(0x4b000000u | number[e]) - SHORT_WHOLE_SHIFTED) * unit;
        if (TRANSFORM == ABI_SPARSEGEN)
            ds[e] = number[e] ? x - missing : 0;
        else
            ds[e] = x - missing * weight[e];
    }
    return half_pack(ds[0], ds[1]);
}

/* ---- by strip, and by number: no index picks a register ---- */

DEVICE void short_keep_one(struct short_held *held, u32 at, const struct short_slope *one)
{
    UNROLL
    for (u32 k = 0; k < SHORT_SLOPES; k++) {
        u32 units = k % 2 ? held->units[k / 2] | one->units << 16 : one->units;
        UNROLL
        for (u32 x = 0; x < SHORT_PAIRS; x++)
            held->pair[k][x] = k == at ? one->pair[x] : held->pair[k][x];
        held->units[k / 2] = k == at ? units : held->units[k / 2];
    }
}

DEVICE struct short_slope short_kept_one(const struct short_held *held, u32 at)
{
    struct short_slope one;
    UNROLL
    for (u32 k = 0; k < SHORT_SLOPES; k++) {
        if (k && k != at)
            continue;
        UNROLL
        for (u32 x = 0; x < SHORT_PAIRS; x++)
            one.pair[x] = held->pair[k][x];
        one.units = held->units[k / 2] >> 16 * (k % 2) & 0xffffu;
    }
    return one;
}

DEVICE void short_keep(struct short_held held[SHORT_STRIPS], u32 strip, u32 at,
                       const struct short_slope *one)
{
    UNROLL
    for (u32 m = 0; m < SHORT_STRIPS; m++)
        if (m == strip)
            short_keep_one(&held[m], at, one);
}

DEVICE struct short_slope short_kept_slope(const struct short_held held[SHORT_STRIPS],
                                           u32 strip, u32 at)
{
    return strip ? short_kept_one(&held[SHORT_STRIPS - 1], at) : short_kept_one(&held[0], at);
}

DEVICE void short_keep_missing(struct short_held held[SHORT_STRIPS], u32 strip,
                               const float missing[2])
{
    UNROLL
    for (u32 k = 0; k < 2 * SHORT_STRIPS; k++)
        if (k / 2 == strip)
            held[k / 2].missing[k % 2] = missing[k % 2];
}

DEVICE float short_missing(const struct short_held held[SHORT_STRIPS], u32 strip, u32 row)
{
    return strip ? held[SHORT_STRIPS - 1].missing[row] : held[0].missing[row];
}

#endif
