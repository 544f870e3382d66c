/* SPDX-License-Identifier: Apache-2.0 */
/* dS of a warp tile, kept in registers from pass 1 to pass 2 in 16 bits. Entries of a row that a lane packs
   together share a power of two, that of the largest. Softmax packs f16: 11 bits down to 2^-28 of the largest,
   so that keys with little attention keep a gradient, and a small correction is not lost as it would be in bf16.
   Sparsegen, whose dS has no factor P, packs fixed point of 14 bits and a sign. */
#ifndef MASKC_CUDA_RESIDENT_DS_REGISTERS_H
#define MASKC_CUDA_RESIDENT_DS_REGISTERS_H
#include "cuda/common/transform.h"
#include "cuda/resident/p_smem.h"
#include "cuda/resident/softmax.h"

enum {
    RESIDENT_DS_BITS = 14,
    RESIDENT_DS_NONE = 0x8000, /* sparsegen: outside the support */
};

/* 1.5 2^23 and 2^23 + 2^15: adding an integer to these leaves it in the last bits of the float. */
#define RESIDENT_WHOLE_NUMBER  float_of(0x4b400000u)
#define RESIDENT_WHOLE_SHIFTED float_of(0x4b008000u)

/* Scores computed at a time: of half a column tile, since dS takes many registers. */
enum {
    RESIDENT_SPAN = 2,                  /* fragments */
    RESIDENT_PAIRS = 2 * RESIDENT_SPAN, /* of neighbouring entries, of a lane */
    RESIDENT_PARTS = 4 / RESIDENT_SPAN, /* of a tile */
    RESIDENT_PACKED = RESIDENT_PARTS * RESIDENT_TILES,
};

/* The scale of dQ and dK is split: dS is multiplied by its power of two, exactly, and the sums by its mantissa,
   often 1. f16 has too small a range for that: there the sums are multiplied by all of it. */
DEVICE float ds_scale_power(const struct abi_args *a)
{
    const u32 power = bits_of(ds_scale(a)) & 0xff800000u;
    return DTYPE == ABI_F16 || !(power << 1) ? 1 : float_of(power);
}

DEVICE float ds_scale_mantissa(const struct abi_args *a)
{
    const u32 bits = bits_of(ds_scale(a)), mantissa = (bits & 0x007fffffu) | 0x3f800000u;
    return DTYPE == ABI_F16 || !(bits << 1 >> 24) ? ds_scale(a) : float_of(mantissa);
}

/* dS of a lane at half a column tile: pairs of neighbouring entries, and a byte for each row's
   exponent. */
struct resident_packed_ds {
    u32 pair[RESIDENT_PAIRS], exponents;
};

/* All of a warp tile's; a word has the exponents of two. And the corrections of delta. */
struct ds_registers {
    u32 pair[RESIDENT_PACKED][RESIDENT_PAIRS], exponents[(RESIDENT_PACKED + 1) / 2];
    float delta_correction[2];
};

/* 2^(x - 127). */
DEVICE float resident_power(u32 x)
{
    return float_of(x << 23);
}

/* The exponent of a row's largest entry, at least RESIDENT_DS_BITS. */
DEVICE u32 resident_exponent(const struct resident_scores *w, u32 row)
{
    float most = 0;
    UNROLL
    for (u32 k = 0; k < RESIDENT_PAIRS; k++) {
        most = larger(most, magnitude_of(w->at[k / 2].x[2 * row + k % 2]));
    }
    u32 exponent = bits_of(most) >> 23;
    return exponent > RESIDENT_DS_BITS ? exponent : RESIDENT_DS_BITS;
}

/* Two entries of sparsegen. What is not finite is lost here, but not in the row's sum, from which pass 2 has it
   again. */
DEVICE u32 resident_ds_pack_fixed(const float *w, const float *p, float by)
{
    u32 bits[2];
    UNROLL
    for (u32 e = 0; e < 2; e++)
        bits[e] = p[e] == 0 ? RESIDENT_DS_NONE : bits_of(w[e] * by + RESIDENT_WHOLE_NUMBER);
    return (bits[0] & 0xffffu) | bits[1] << 16;
}

DEVICE void resident_ds_pack(struct resident_packed_ds *ret, const struct resident_scores *w,
                             const struct resident_scores *p)
{
    u32 exponent[2] = {resident_exponent(w, 0), resident_exponent(w, 1)};
    ret->exponents = exponent[0] | exponent[1] << 8;
    UNROLL
    for (u32 k = 0; k < RESIDENT_PAIRS; k++) {
        const float by = resident_power(253 + RESIDENT_DS_BITS - exponent[k % 2]);
        const float *x = &w->at[k / 2].x[2 * (k % 2)];
        ret->pair[k] = TRANSFORM == ABI_SPARSEGEN
                           ? resident_ds_pack_fixed(x, &p->at[k / 2].x[2 * (k % 2)], by)
                           : f16_pack(x[0] * by, x[1] * by);
    }
}

DEVICE float resident_ds_unpack_fixed(u32 number, float step, float delta_correction)
{
    return number ? (float_of(0x4b000000u | number) - RESIDENT_WHOLE_SHIFTED) * step -
                        delta_correction
                  : 0;
}

/* dS of pair k times `by`: less P times the correction for softmax, less the correction on the support for
   sparsegen. `p` is the pair of P from p_smem. */
DEVICE u32 resident_ds_unpack(const struct resident_packed_ds *one, u32 k, u32 p,
                              float delta_correction, float by)
{
    const u32 pair = one->pair[k], shifted = pair ^ 0x80008000u;
    const u32 exponent = one->exponents >> 8 * (k % 2) & 0xff;
    const float step = resident_power(exponent - (RESIDENT_DS_BITS - 1)) * by;
    delta_correction *= by;
    if (TRANSFORM == ABI_SPARSEGEN)
        return half_pack(resident_ds_unpack_fixed(shifted & 0xffffu, step, delta_correction),
                         resident_ds_unpack_fixed(shifted >> 16, step, delta_correction));
    p &= DROPOUT ? 0x7fff7fffu : 0xffffffffu; /* p_smem has -P of a dropped entry */
    return half_pack(f16_low(pair) * step - delta_correction * half_low(p),
                     f16_high(pair) * step - delta_correction * half_high(p));
}

/* ---- by warp tile and place; selects instead of indices keep all in registers ---- */

DEVICE void ds_registers_put_at(struct ds_registers *regs, u32 at,
                                const struct resident_packed_ds *one)
{
    UNROLL
    for (u32 k = 0; k < RESIDENT_PACKED; k++) {
        u32 low = regs->exponents[k / 2] & 0xffffu;
        u32 exponents =
            k % 2 ? low | one->exponents << 16 : one->exponents; /* even numbers come first */
        UNROLL
        for (u32 x = 0; x < RESIDENT_PAIRS; x++)
            regs->pair[k][x] = k == at ? one->pair[x] : regs->pair[k][x];
        regs->exponents[k / 2] = k == at ? exponents : regs->exponents[k / 2];
    }
}

DEVICE struct resident_packed_ds ds_registers_get_at(const struct ds_registers *regs, u32 at)
{
    struct resident_packed_ds one;
    UNROLL
    for (u32 k = 0; k < RESIDENT_PACKED; k++) {
        if (k && k != at)
            continue;
        UNROLL
        for (u32 x = 0; x < RESIDENT_PAIRS; x++)
            one.pair[x] = regs->pair[k][x];
        one.exponents = regs->exponents[k / 2] >> 16 * (k % 2) & 0xffffu;
    }
    return one;
}

DEVICE void ds_registers_put(struct ds_registers regs[RESIDENT_ROW_BLOCKS], u32 row_block,
                             u32 at, const struct resident_packed_ds *one)
{
    UNROLL
    for (u32 m = 0; m < RESIDENT_ROW_BLOCKS; m++)
        if (m == row_block)
            ds_registers_put_at(&regs[m], at, one);
}

DEVICE struct resident_packed_ds ds_registers_get(
    const struct ds_registers regs[RESIDENT_ROW_BLOCKS], u32 row_block, u32 at)
{
    return row_block ? ds_registers_get_at(&regs[RESIDENT_ROW_BLOCKS - 1], at)
                     : ds_registers_get_at(&regs[0], at);
}

DEVICE void ds_registers_put_correction(struct ds_registers regs[RESIDENT_ROW_BLOCKS],
                                        u32 row_block, const float delta_correction[2])
{
    UNROLL
    for (u32 k = 0; k < 2 * RESIDENT_ROW_BLOCKS; k++)
        if (k / 2 == row_block)
            regs[k / 2].delta_correction[k % 2] = delta_correction[k % 2];
}

DEVICE float ds_registers_correction(const struct ds_registers regs[RESIDENT_ROW_BLOCKS],
                                     u32 row_block, u32 row)
{
    return row_block ? regs[RESIDENT_ROW_BLOCKS - 1].delta_correction[row]
                     : regs[0].delta_correction[row];
}

#endif
