/* SPDX-License-Identifier: Apache-2.0 */
/* The one matrix product, C (+)= A B, that all dense work comes down to: a block of MICRO_ROWS x 2
   vectors (at the edge of a head: 1) stays in registers, A is read one float at a time, B one
   vector at a time. Scores: A is the row block's rows, B a panel. Sums: A is the scores, B the rows. */
#ifndef MASKC_CPU_PRODUCT_H
#define MASKC_CPU_PRODUCT_H
#include "cpu/layout.h"

#if MATRIX
#include "cpu/matrix/product.h"
#else
#if VECTOR_BYTES == 64 /* 32 vector registers */
enum { MICRO_ROWS = 8 };
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#else
enum { MICRO_ROWS = 4 };
#define EACH_ROW(X) X(0) X(1) X(2) X(3)
#endif

enum { BLOCKS = BLOCK_ROWS / MICRO_ROWS, BLOCKS_ALL = (1 << BLOCKS) - 1 };

/* Distances between the rows of C, A and B; columns of A. `add`: C is added to. */
struct product_shape {
    u32 stride_c, stride_a;
    i64 stride_b;
    u32 depth;
    int add;
};

INLINE void product_2(float *c, const float *a, const float *b, struct product_shape s)
{
#define ZERO(r) vec c##r##0 = {0}, c##r##1 = {0};
    EACH_ROW(ZERO)
    for (u32 k = 0; k < s.depth; k++, b += s.stride_b, a++) {
        vec b0 = load(b), b1 = load(b + LANES);
#define STEP(r)                           \
    {                                     \
        vec x = splat(a[r * s.stride_a]); \
        c##r##0 += x * b0;                \
        c##r##1 += x * b1;                \
    }
        EACH_ROW(STEP)
    }
#define PUT(r)                                                           \
    {                                                                    \
        float *to = c + r * s.stride_c;                                  \
        store(to, s.add ? load(to) + c##r##0 : c##r##0);                 \
        store(to + LANES, s.add ? load(to + LANES) + c##r##1 : c##r##1); \
    }
    EACH_ROW(PUT)
#undef ZERO
#undef STEP
#undef PUT
}

INLINE void product_1(float *c, const float *a, const float *b, struct product_shape s)
{
#define ZERO(r) vec c##r = {0};
    EACH_ROW(ZERO)
    for (u32 k = 0; k < s.depth; k++, b += s.stride_b, a++) {
        vec b0 = load(b);
#define STEP(r) c##r += splat(a[r * s.stride_a]) * b0;
        EACH_ROW(STEP)
    }
#define PUT(r)  store(c + r * s.stride_c, s.add ? load(c + r * s.stride_c) + c##r : c##r);
    EACH_ROW(PUT)
#undef ZERO
#undef STEP
#undef PUT
}

/* Scores of a row block with 32 columns from j, in the blocks of rows whose bit of `live` is set. */
static void scores_product(float *scores, const float *a, const struct operand *o, u32 j,
                           u32 live)
{
    u32 stride;
    const float *b = panel_column(o, j, &stride);
    for (u32 c = 0; c < TILE; c += 2 * LANES)
        for (u32 k = 0; k < BLOCKS; k++)
            if (live >> k & 1)
                product_2(scores + k * MICRO_ROWS * SCORE_STRIDE + c,
                          a + k * MICRO_ROWS * WIDTH, b + c,
                          (struct product_shape){SCORE_STRIDE, WIDTH, stride, HEAD_DIM, 0});
}

/* sums += p x rows j .. j + depth - 1 of the operand. */
static void sums_product(float *sums, const float *p, const struct operand *o, u32 j, u32 depth,
                         u32 live)
{
    const float *rows = o->rows + j * o->stride;
    for (u32 k = 0; k < BLOCKS; k++) {
        if (!(live >> k & 1))
            continue;
        const float *a = p + k * MICRO_ROWS * SCORE_STRIDE;
        float *c = sums + k * MICRO_ROWS * WIDTH;
        u32 d = 0;
        for (; d + 2 * LANES <= WIDTH; d += 2 * LANES)
            product_2(c + d, a, rows + d,
                      (struct product_shape){WIDTH, SCORE_STRIDE, o->stride, depth, 1});
        if (d < WIDTH)
            product_1(c + d, a, rows + d,
                      (struct product_shape){WIDTH, SCORE_STRIDE, o->stride, depth, 1});
    }
}

#endif
#endif
