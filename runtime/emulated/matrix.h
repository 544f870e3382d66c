/* SPDX-License-Identifier: Apache-2.0 */
/* Products and matrix loads of templates/cuda/common/matrix.h, as collectives, with the layout that the hardware
   has. Sums run over the 16 terms in order, in float. */
#pragma once
#include "copies.h"
#include "warp.h"

/* ---- halves ---- */

static inline uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

static inline float bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static float float_from(uint32_t half, uint32_t f16)
{
    if (!f16)
        return bits_float(half << 16);
    uint32_t sign = (half & 0x8000) << 16, rest = half & 0x7fff;
    if (rest >= 0x7c00)
        return bits_float(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    /* Treat the rest as a float's exponent and fraction; 2^112 moves the exponent, denormals with it. */
    return bits_float(sign | float_bits(bits_float(rest << 13) * 0x1p112f));
}

/* bits >> shift, to the nearest, ties to even. */
static inline uint32_t shift_round(uint32_t bits, uint32_t shift)
{
    uint32_t half = 1u << (shift - 1);
    return (bits + half - 1 + (bits >> shift & 1)) >> shift;
}

static uint32_t half_from(float x, uint32_t f16)
{
    uint32_t bits = float_bits(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000)
        return 0x7fff;
    if (!f16)
        return (sign | shift_round(rest, 16));
    if (rest >= 0x477ff000) /* 65520: rounds to infinity */
        return (sign | 0x7c00);
    if (rest >= 0x38800000) /* 2^-14: a normal f16 */
        return (sign | (shift_round(rest, 13) - (112u << 10)));
    /* Adding 2^-1 leaves multiples of 2^-24, rounded by the addition itself. */
    return (sign | (float_bits(bits_float(rest) + 0.5f) - float_bits(0.5f)));
}

/* ---- products ---- */

/* One for all lanes: they come together, or the block fails. */
static inline void count_product(void)
{
    the_block->launch->products += the_block->face.current % WARP == 0;
}

struct product {
    float *c;
    const uint32_t *a;
    uint32_t b[2];
    bool f16;
};

/* The two halves of a word. */
static inline void unpack(uint32_t word, bool f16, float *low, float *high)
{
    *low = float_from(word & 0xffff, f16);
    *high = float_from(word >> 16, f16);
}

static void gather_operands(struct thread *t, float a[16][16], float b[16][8], float c[16][8])
{
    for (uint32_t lane = 0; lane < WARP; lane++) {
        const struct product *p = t[lane].hand;
        uint32_t g = lane / 4, u = 2 * (lane % 4);
        for (uint32_t k = 0; k < 4; k++) {
            uint32_t row = g + 8 * (k % 2), column = u + 8 * (k / 2);
            unpack(p->a[k], p->f16, &a[row][column], &a[row][column + 1]);
            c[g + 8 * (k / 2)][u + k % 2] = p->c[k];
        }
        for (uint32_t k = 0; k < 2; k++)
            unpack(p->b[k], p->f16, &b[u + 8 * k][g], &b[u + 8 * k + 1][g]);
    }
}

static void meet_product(struct thread *t)
{
    float a[16][16], b[16][8], c[16][8];
    gather_operands(t, a, b, c);
    for (uint32_t i = 0; i < 16; i++)
        for (uint32_t k = 0; k < 16; k++)
            for (uint32_t j = 0; j < 8; j++)
                c[i][j] += a[i][k] * b[k][j];
    for (uint32_t lane = 0; lane < WARP; lane++)
        for (uint32_t k = 0; k < 4; k++)
            ((const struct product *)t[lane].hand)->c[k] =
                c[lane / 4 + 8 * (k / 2)][2 * (lane % 4) + k % 2];
}

static void multiply(float *c, const uint32_t *a, uint32_t b0, uint32_t b1, uint32_t f16,
                     struct place at)
{
    struct product p = {c, a, {b0, b1}, f16};
    count_product();
    meet_warp(meet_product, &p, at);
}

/* ---- products in tf32 ---- */

/* To the nearest of 11 bits, ties away from zero, as cvt.rna does. */
static uint32_t tf32_from(float x)
{
    uint32_t bits = float_bits(x);
    return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & 0xffffe000;
}

/* Bits of an operand that a tf32 product uses. */
static inline float tf32_part(uint32_t bits)
{
    return bits_float(bits & 0xffffe000);
}

static void meet_tf32(struct thread *t)
{
    float a[16][8], b[8][8];
    for (uint32_t lane = 0; lane < WARP; lane++) {
        const struct product *p = t[lane].hand;
        uint32_t g = lane / 4, u = lane % 4;
        for (uint32_t k = 0; k < 4; k++)
            a[g + 8 * (k % 2)][u + 4 * (k / 2)] = tf32_part(p->a[k]);
        for (uint32_t k = 0; k < 2; k++)
            b[u + 4 * k][g] = tf32_part(p->b[k]);
    }
    for (uint32_t lane = 0; lane < WARP; lane++)
        for (uint32_t k = 0; k < 4; k++) {
            float *c = &((const struct product *)t[lane].hand)->c[k];
            for (uint32_t m = 0; m < 8; m++)
                *c += a[lane / 4 + 8 * (k / 2)][m] * b[m][2 * (lane % 4) + k % 2];
        }
}

static void multiply_tf32(float *c, const uint32_t *a, uint32_t b0, uint32_t b1,
                          struct place at)
{
    struct product p = {c, a, {b0, b1}, false};
    count_product();
    meet_warp(meet_tf32, &p, at);
}

/* ---- matrix loads ---- */

struct matrix_load {
    uint32_t *to;
    const uint16_t *row;
};

static const uint16_t *matrix_row(const struct thread *t, uint32_t matrix, uint32_t row)
{
    return ((const struct matrix_load *)t[8 * matrix + row].hand)->row;
}

static void meet_load(struct thread *t)
{
    for (uint32_t lane = 0; lane < WARP; lane++)
        for (uint32_t m = 0; m < 4; m++)
            memcpy(&((const struct matrix_load *)t[lane].hand)->to[m],
                   matrix_row(t, m, lane / 4) + 2 * (lane % 4), 4);
}

static void meet_load_transposed(struct thread *t)
{
    for (uint32_t lane = 0; lane < WARP; lane++)
        for (uint32_t m = 0; m < 4; m++) {
            uint32_t low = matrix_row(t, m, 2 * (lane % 4))[lane / 4];
            uint32_t high = matrix_row(t, m, 2 * (lane % 4) + 1)[lane / 4];
            ((const struct matrix_load *)t[lane].hand)->to[m] = low | high << 16;
        }
}

static void load_matrices(uint32_t *r, const void *row, uint32_t transposed, struct place at)
{
    struct matrix_load load = {r, row};
    watch_access(row, 16, EMULATION_MATRIX, at);
    meet_warp(transposed ? meet_load_transposed : meet_load, &load, at);
}
