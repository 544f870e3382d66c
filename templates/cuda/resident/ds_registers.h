/* SPDX-License-Identifier: Apache-2.0 */
/* Slopes of a row block kept in registers from the first turn to the second, in 16 bits of a unit: all that
   the lane has of a row, at what is held together, shares a power of two. Of softmax these are f16,
   whose 11 bits go down to 2^-28 of the largest: a key that gets little attention has its gradient
   too, and a small correction is not lost as it would be in bf16. Of sparsegen, where no entry is
   weighed, they are whole numbers of 14 bits and a sign, exact to 2^-14 of the largest. */
#ifndef MASKC_CUDA_RESIDENT_DS_REGISTERS_H
#define MASKC_CUDA_RESIDENT_DS_REGISTERS_H
#include "cuda/common/transform.h"
#include "cuda/resident/p_smem.h"
#include "cuda/resident/softmax.h"

enum {
    RESIDENT_UNIT_BITS = 14,
    RESIDENT_UNIT_NONE = 0x8000, /* sparsegen: not of the support */
};

/* 1.5 2^23 and 2^23 + 2^15: a whole number added to these stands in their last bits. */
#define RESIDENT_WHOLE_NUMBER  float_of(0x4b400000u)
#define RESIDENT_WHOLE_SHIFTED float_of(0x4b008000u)

/* Scores that are there at a time: of a tile, or where all that is held leaves no room, half of it. */
enum {
    RESIDENT_SPAN = RESIDENT_TILES > 4 ? 2 : 4, /* fragments */
    RESIDENT_PAIRS = 2 * RESIDENT_SPAN,         /* of neighbouring entries, of a lane */
    RESIDENT_PARTS = 4 / RESIDENT_SPAN,         /* of a tile */
    RESIDENT_SLOPES = RESIDENT_PARTS * RESIDENT_TILES,
};

/* The scale of dQ and dK is a power of two, by which dS is multiplied, exactly, and what is left for their sums,
   often 1. In f16, whose range is small, that is all of it. */
DEVICE float resident_scale_held(const struct abi_args *a)
{
    const u32 power = bits_of(slope_scale(a)) & 0xff800000u;
    return DTYPE == ABI_F16 || !(power << 1) ? 1 : float_of(power);
}

DEVICE float resident_scale_left(const struct abi_args *a)
{
    const u32 bits = bits_of(slope_scale(a)), mantissa = (bits & 0x007fffffu) | 0x3f800000u;
    return DTYPE == ABI_F16 || !(bits << 1 >> 24) ? slope_scale(a) : float_of(mantissa);
}

/* One of these: pair k has entries 2 k and 2 k + 1 of the lane; a byte for each row, the unit's exponent. */
struct resident_slope {
    u32 pair[RESIDENT_PAIRS], units;
};

/* A row block's; two times two units in a word. `missing`: what delta is more than c was. */
struct resident_held {
    u32 pair[RESIDENT_SLOPES][RESIDENT_PAIRS], units[(RESIDENT_SLOPES + 1) / 2];
    float missing[2];
};

/* 2^(x - 127). */
DEVICE float resident_power(u32 x)
{
    return float_of(x << 23);
}

/* The exponent of a row's largest entry, but no smaller than a unit can be told with. */
DEVICE u32 resident_exponent(const struct resident_scores *w, u32 row)
{
    float most = 0;
    UNROLL
    for (u32 k = 0; k < RESIDENT_PAIRS; k++) {
        most = larger(most, magnitude_of(w->at[k / 2].x[2 * row + k % 2]));
    }
    u32 exponent = bits_of(most) >> 23;
    return exponent > RESIDENT_UNIT_BITS ? exponent : RESIDENT_UNIT_BITS;
}

/* Two entries of sparsegen; where P is 0 there is nothing. What is not finite is lost here, not in the
   sum of the row, by which the second turn finds it again. */
DEVICE u32 resident_hold_whole(const float *w, const float *p, float by)
{
    u32 bits[2];
    UNROLL
    for (u32 e = 0; e < 2; e++)
        bits[e] = p[e] == 0 ? RESIDENT_UNIT_NONE : bits_of(w[e] * by + RESIDENT_WHOLE_NUMBER);
    return (bits[0] & 0xffffu) | bits[1] << 16;
}

DEVICE void resident_hold(struct resident_slope *ret, const struct resident_scores *w,
                          const struct resident_scores *p)
{
    u32 exponent[2] = {resident_exponent(w, 0), resident_exponent(w, 1)};
    ret->units = exponent[0] | exponent[1] << 8;
    UNROLL
    for (u32 k = 0; k < RESIDENT_PAIRS; k++) {
        const float by = resident_power(253 + RESIDENT_UNIT_BITS - exponent[k % 2]);
        const float *x = &w->at[k / 2].x[2 * (k % 2)];
        ret->pair[k] = TRANSFORM == ABI_SPARSEGEN
                           ? resident_hold_whole(x, &p->at[k / 2].x[2 * (k % 2)], by)
                           : f16_pack(x[0] * by, x[1] * by);
    }
}

DEVICE float resident_release_whole(u32 number, float unit, float missing)
{
    return number ? (float_of(0x4b000000u | number) - RESIDENT_WHOLE_SHIFTED) * unit - missing
                  : 0;
}

/* dS of pair k, P of which is `p`, rounded, times `by`: of softmax, what is held less missing P; of sparsegen less
   `missing`, on the support. */
DEVICE u32 resident_release(const struct resident_slope *held, u32 k, u32 p, float missing,
                            float by)
{
    const u32 pair = held->pair[k], shifted = pair ^ 0x80008000u;
    const u32 exponent = held->units >> 8 * (k % 2) & 0xff;
    const float unit = resident_power(exponent - (RESIDENT_UNIT_BITS - 1)) * by;
    missing *= by;
    if (TRANSFORM == ABI_SPARSEGEN)
        return half_pack(resident_release_whole(shifted & 0xffffu, unit, missing),
                         resident_release_whole(shifted >> 16, unit, missing));
    p &= DROPOUT ? 0x7fff7fffu : 0xffffffffu; /* of a dropped entry the square has -P */
    return half_pack(f16_low(pair) * unit - missing * half_low(p),
                     f16_high(pair) * unit - missing * half_high(p));
}

/* ---- by row block, and by number: no index picks a register ---- */

DEVICE void resident_keep_one(struct resident_held *held, u32 at,
                              const struct resident_slope *one)
{
    UNROLL
    for (u32 k = 0; k < RESIDENT_SLOPES; k++) {
        u32 low = held->units[k / 2] & 0xffffu;
        u32 units = k % 2 ? low | one->units << 16 : one->units; /* even numbers come first */
        UNROLL
        for (u32 x = 0; x < RESIDENT_PAIRS; x++)
            held->pair[k][x] = k == at ? one->pair[x] : held->pair[k][x];
        held->units[k / 2] = k == at ? units : held->units[k / 2];
    }
}

DEVICE struct resident_slope resident_kept_one(const struct resident_held *held, u32 at)
{
    struct resident_slope one;
    UNROLL
    for (u32 k = 0; k < RESIDENT_SLOPES; k++) {
        if (k && k != at)
            continue;
        UNROLL
        for (u32 x = 0; x < RESIDENT_PAIRS; x++)
            one.pair[x] = held->pair[k][x];
        one.units = held->units[k / 2] >> 16 * (k % 2) & 0xffffu;
    }
    return one;
}

DEVICE void resident_keep(struct resident_held held[RESIDENT_ROW_BLOCKS], u32 row_block, u32 at,
                          const struct resident_slope *one)
{
    UNROLL
    for (u32 m = 0; m < RESIDENT_ROW_BLOCKS; m++)
        if (m == row_block)
            resident_keep_one(&held[m], at, one);
}

DEVICE struct resident_slope resident_kept_slope(
    const struct resident_held held[RESIDENT_ROW_BLOCKS], u32 row_block, u32 at)
{
    return row_block ? resident_kept_one(&held[RESIDENT_ROW_BLOCKS - 1], at)
                     : resident_kept_one(&held[0], at);
}

DEVICE void resident_keep_missing(struct resident_held held[RESIDENT_ROW_BLOCKS], u32 row_block,
                                  const float missing[2])
{
    UNROLL
    for (u32 k = 0; k < 2 * RESIDENT_ROW_BLOCKS; k++)
        if (k / 2 == row_block)
            held[k / 2].missing[k % 2] = missing[k % 2];
}

DEVICE float resident_missing(const struct resident_held held[RESIDENT_ROW_BLOCKS],
                              u32 row_block, u32 row)
{
    return row_block ? held[RESIDENT_ROW_BLOCKS - 1].missing[row] : held[0].missing[row];
}

#endif
