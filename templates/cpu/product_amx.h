/* SPDX-License-Identifier: Apache-2.0 */
/* The two products on a matrix unit, 32 x 32 entries of C at a time: scores from the strip's rows in
   bf16 and a panel of pairs, sums from weights in bf16 and pairs of rows. */
#ifndef MASKC_CPU_PRODUCT_AMX_H
#define MASKC_CPU_PRODUCT_AMX_H

enum { BLOCK_ROWS = 16, BLOCKS = STRIP_ROWS / BLOCK_ROWS, BLOCKS_ALL = (1 << BLOCKS) - 1 };
typedef char two_blocks_of_rows[BLOCKS == 2 ? 1 : -1];

/* Of a row of weights: an odd number of cache lines. */
enum { WEIGHT_STRIDE = CHUNK_COLS + TILE };

/* Scores of a strip with two panels of 16 columns, in the row blocks whose bit of `live` is set;
   `panels` 1: the second one's are zero. */
INLINE void panels_product(float *scores, const u16 *a, const float *b, u32 live, u32 panels)
{
    block_zero(live, 2);
    for (u32 d = 0; d < DEPTH; d += 32, b += 16 * MATRIX_COLS)
        block_step(a + d, DEPTH, b, b + DEPTH / 2 * MATRIX_COLS, MATRIX_COLS, live, panels);
    block_store(scores, SCORE_STRIDE, live, 2);
}

/* The same with 32 columns from j. */
static void scores_product(float *scores, const u16 *a, const struct operand *o, u32 j,
                           u32 live)
{
    panels_product(scores, a, o->panels + (u64)j * (DEPTH / 2), live, 2);
}

/* sums[.. columns x 16] += weights from column `at` x 32 rows in pairs, for each step. */
struct sums_step {
    u32 at;
    const u32 *pairs;
};

INLINE void sums_columns(float *sums, const u16 *weights, u32 d, const struct sums_step *step,
                         u32 steps, u32 live, u32 columns, u32 blank)
{
    if (blank)
        block_zero(live, columns);
    else
        block_load(sums + d, WIDTH, live, columns);
    for (u32 k = 0; k < steps; k++)
        block_step(weights + step[k].at, WEIGHT_STRIDE, step[k].pairs + d,
                   step[k].pairs + d + 16, WIDTH, live, columns);
    block_store(sums + d, WIDTH, live, columns);
}

/* blank: nothing is in the sums yet. */
static void sums_product(float *sums, const u16 *weights, const struct sums_step *step,
                         u32 steps, u32 live, u32 blank)
{
    u32 d = 0;
    for (; d + 32 <= WIDTH; d += 32)
        sums_columns(sums, weights, d, step, steps, live, 2, blank);
    if (d < WIDTH)
        sums_columns(sums, weights, d, step, steps, live, 1, blank);
}

#endif
