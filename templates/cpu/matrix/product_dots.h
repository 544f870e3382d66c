/* SPDX-License-Identifier: Apache-2.0 */
/* Products by dot products of pairs: 8 rows x 32 columns of C stay in registers, A is read one pair at a
   time, B a vector of pairs. */
#ifndef MASKC_CPU_MATRIX_PRODUCT_DOTS_H
#define MASKC_CPU_MATRIX_PRODUCT_DOTS_H
#include "cpu/matrix/blocks.h"

enum { DOT_ROWS = 8 };
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

/* Distances between rows of C and of A. B of a product: `depth` rows of pairs, `stride` words apart, with the second 16
   columns `second` words after the first. `columns`: 1 or 2 times 16. */
struct dots_shape {
    u32 stride_c, stride_a;
    u32 depth, stride, second, columns;
};

/* C (8 rows of 1 or 2 times 16 columns) += A (from column `at`) x B, for each step. With `blank` C starts from 0. */
INLINE void rows_product(float *c, const u16 *a, const struct sums_step *step, u32 steps,
                         struct dots_shape b, u32 blank)
{
    const u32 columns = b.columns, stride_c = b.stride_c, stride_a = b.stride_a;
#define BEGIN(r)                                      \
    vec c##r##0 = splat(0), c##r##1 = splat(0);       \
    if (!blank) {                                     \
        c##r##0 = load(c + r * stride_c);             \
        if (columns > 1)                              \
            c##r##1 = load(c + r * stride_c + LANES); \
    }
    EACH_ROW(BEGIN)
    for (u32 s = 0; s < steps; s++) {
        const u16 *x = a + step[s].at;
        const float *y = (const float *)(const void *)step[s].pairs;
        for (u32 k = 0; k < b.depth; k++, x += 2, y += b.stride) {
            vec y0 = load(y), y1 = columns > 1 ? load(y + b.second) : y0;
#define STEP(r)                                  \
    {                                            \
        vec pair = pair_splat(x + r * stride_a); \
        DOT(c##r##0, pair, y0);                  \
        if (columns > 1)                         \
            DOT(c##r##1, pair, y1);              \
    }
            EACH_ROW(STEP)
        }
    }
#define PUT(r)                        \
    store(c + r * stride_c, c##r##0); \
    if (columns > 1)                  \
        store(c + r * stride_c + LANES, c##r##1);
    EACH_ROW(PUT)
#undef BEGIN
#undef STEP
#undef PUT
}

/* Scores of a row block with two panels of 16 columns, in the blocks of rows whose bit of `live` is set. With `panels`
   1 the second panel's scores are zero. */
INLINE void panels_product(float *scores, const u16 *a, const float *b, u32 live, u32 panels)
{
    enum { PANEL = DEPTH / 2 * MATRIX_COLS };
    const struct dots_shape one = {SCORE_STRIDE, DEPTH, DEPTH / 2, MATRIX_COLS, PANEL, 1};
    const struct dots_shape two = {SCORE_STRIDE, DEPTH, DEPTH / 2, MATRIX_COLS, PANEL, 2};
    const struct sums_step all = {0, (const u32 *)(const void *)b};
    for (u32 r = 0; r < BLOCK_ROWS; r += DOT_ROWS, a += DOT_ROWS * DEPTH) {
        float *c = scores + r * SCORE_STRIDE;
        if (!(live >> (r / MICRO_ROWS) & 1))
            continue;
        if (panels > 1) {
            rows_product(c, a, &all, 1, two, 1);
            continue;
        }
        rows_product(c, a, &all, 1, one, 1);
        for (u32 k = 0; k < DOT_ROWS; k++)
            store(c + k * SCORE_STRIDE + LANES, splat(0));
    }
}

/* sums[.. columns x 16] += p x rows in pairs, for each step. */
INLINE void sums_columns(float *sums, const u16 *p, u32 d, const struct sums_step *step,
                         u32 steps, struct sums_part x)
{
    const struct dots_shape shape = {WIDTH, P_STRIDE, TILE / 2, WIDTH, LANES, x.columns};
    struct sums_step here[P_STRIDE / TILE];
    for (u32 k = 0; k < steps; k++)
        here[k] = (struct sums_step){step[k].at, step[k].pairs + d};
    for (u32 r = 0; r < BLOCK_ROWS; r += DOT_ROWS)
        if (x.live >> (r / MICRO_ROWS) & 1)
            rows_product(sums + d + r * WIDTH, p + r * P_STRIDE, here, steps, shape, x.blank);
}

INLINE void fused_rows(const u16 *a)
{
    (void)a;
}

/* Scores of the rows with both panels, in the call for the first. */
INLINE void fused_panel(const u16 *a, const float *panels, u32 half, u32 width, u32 live,
                        float *to)
{
    if (!half)
        panels_product(to, a, panels, live, width > MATRIX_COLS ? 2 : 1);
}

/* ---- of one row ---- */

/* to[.. 16 x panels] = row x columns. */
INLINE void one_row_scores(float *to, const u16 *row, const float *b, u32 panels)
{
    enum { PANEL = MATRIX_COLS * DEPTH / 2, MOST = 4 };
    vec sum[MOST] = {{0}};
    for (u32 d = 0; d < DEPTH; d += 2, b += MATRIX_COLS) {
        const vec pair = pair_splat(row + d);
        for (u32 k = 0; k < MOST && k < panels; k++)
            DOT(sum[k], pair, load(b + k * PANEL));
    }
    for (u32 k = 0; k < MOST && k < panels; k++)
        store(to + k * MATRIX_COLS, sum[k]);
}

/* sums[WIDTH] = p of `cols` columns x their rows in pairs. */
INLINE void one_row_sums(float *sums, const u16 *p, const u32 *pairs, u32 cols)
{
    enum { VECS = WIDTH / LANES };
    const float *b = (const float *)(const void *)pairs;
    vec sum[VECS] = {{0}};
    for (u32 c = 0; c < cols; c += 2, b += WIDTH) {
        const vec pair = pair_splat(p + c);
        for (u32 k = 0; k < VECS; k++)
            DOT(sum[k], pair, load(b + k * LANES));
    }
    for (u32 k = 0; k < VECS; k++)
        store(sums + k * LANES, sum[k]);
}

#endif
