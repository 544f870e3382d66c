/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a tile on tensor cores, for --dtype tf32. Operands were rounded to 11 bits by load4; entries are
   rounded here; sums are float. A warp has eight rows where a product takes 16: the lower eight are zero. A
   thread holds the same slots and sums as without tensor cores: slots are the columns of the product as they
   are, and positions of the head are permuted so that the product's sums are the thread's. */
#ifndef MASKC_CUDA_SIMT_TF32_H
#define MASKC_CUDA_SIMT_TF32_H
#include "cuda/simt/tensor.h"

/* One value for each slot that the thread holds. */
struct slots {
    float at[SLOTS];
};

enum {
    PARTS = SLOTS / 2, /* of 8 columns, in a column tile of 32 */
    /* D > 128: sums stay with float arithmetic, products would spill registers. */
    TF32_SUMS = TF32 && CHUNKS <= 8,
};

/* The row (or column) of the warp's eight that the lane has. */
DEVICE u32 lane_row(void)
{
    return quad() % 8;
}

/* An element of an operand in shared memory, rounded by load4. */
DEVICE u32 tf32_bits(const float *at)
{
    return bits_of(shared_get(at));
}

DEVICE void dots_by_tf32(struct slots *ret, const float *row, const float *tile)
{
    const float *own = row + quad() * PITCH + quad_lane();
    const float *column = tile + lane_row() * PITCH + quad_lane();
    struct frag_c c[PARTS];
    UNROLL
    for (u32 f = 0; f < PARTS; f++)
        c[f].x[0] = c[f].x[1] = c[f].x[2] = c[f].x[3] = 0;
    NO_UNROLL
    for (u32 d = 0; d < HEAD_DIM; d += 8) {
        struct frag_a a = {{tf32_bits(own + d), 0, tf32_bits(own + d + 4), 0}};
        UNROLL
        for (u32 f = 0; f < PARTS; f++) {
            const float *at = column + 8 * f * PITCH + d;
            mma_1688(&c[f], &a, tf32_bits(at), tf32_bits(at + 4));
        }
    }
    UNROLL
    for (u32 k = 0; k < SLOTS; k++)
        ret->at[k] = c[k / 2].x[k % 2];
}

/* Position d of a column, as second operand. */
DEVICE u32 tf32_value(const float *column, u32 d)
{
    return HEAD_DIM % 16 == 0 || d < HEAD_DIM ? tf32_bits(column + d) : 0;
}

/* Adds a product to two of the thread's sums: entries times columns at position d. */
DEVICE void tf32_add(float *low, float *high, const struct frag_a a[PARTS],
                     const float *columns, u32 d)
{
    struct frag_c c = {{*low, *high, 0, 0}};
    UNROLL
    for (u32 f = 0; f < PARTS; f++) {
        const float *even = columns + 8 * f * PITCH;
        mma_1688(&c, &a[f], tf32_value(even, d), tf32_value(even + PITCH, d));
    }
    *low = c.x[0];
    *high = c.x[1];
}

/* A thread's four sums of a chunk belong to two products, two each. Lanes 0 and 1 of a quad have the first two
   in product 0, lanes 2 and 3 in product 1: eight neighbouring positions of four columns then lie in different
   banks. */
DEVICE void accumulate_by_tf32(struct sums *sums, const struct slots *entries,
                               const float *tile)
{
    const u32 swapped = quad_lane() / 2, n = lane_row(), first = 4 * (n / 2) + n % 2;
    const float *columns = tile + 2 * quad_lane() * PITCH;
    struct frag_a a[PARTS];
    UNROLL
    for (u32 f = 0; f < PARTS; f++) {
        a[f].x[0] = tf32_of(entries->at[2 * f]);
        a[f].x[2] = tf32_of(entries->at[2 * f + 1]);
        a[f].x[1] = a[f].x[3] = 0;
    }
    UNROLL
    for (u32 k = 0; k < CHUNKS; k++) {
        struct f4 *s = &sums->at[k];
        float x[4] = {swapped ? s->z : s->x, swapped ? s->w : s->y, swapped ? s->x : s->z,
                      swapped ? s->y : s->w};
        tf32_add(&x[0], &x[1], a, columns, 16 * k + first + 2 * (n / 4));
        tf32_add(&x[2], &x[3], a, columns, 16 * k + first + 2 * (1 - n / 4));
        s->x = swapped ? x[2] : x[0];
        s->y = swapped ? x[3] : x[1];
        s->z = swapped ? x[0] : x[2];
        s->w = swapped ? x[1] : x[3];
    }
}

#endif
