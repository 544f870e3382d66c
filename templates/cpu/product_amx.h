/* SPDX-License-Identifier: Apache-2.0 */
/* The two products on a matrix unit, 32 x 32 entries of C at a time: scores from the strip's rows in
   bf16 and a panel of pairs, sums from weights in bf16 and pairs of rows. */
#ifndef MASKC_CPU_PRODUCT_AMX_H
#define MASKC_CPU_PRODUCT_AMX_H

enum { BLOCK_ROWS = 16, BLOCKS = STRIP_ROWS / BLOCK_ROWS, BLOCKS_ALL = (1 << BLOCKS) - 1 };
typedef char two_blocks_of_rows[BLOCKS == 2 ? 1 : -1];

/* Of a row of weights: an odd number of cache lines. */
enum { WEIGHT_STRIDE = CHUNK_COLS + TILE };

/* Scores of a strip with 32 columns from j, in the row blocks whose bit of `live` is set. */
static void scores_product(float *scores, const u16 *a, const struct operand *o, u32 j,
                           u32 live)
{
    const float *b = o->panels + (u64)j * (DEPTH / 2);
    block_zero(live, 2);
    for (u32 d = 0; d < DEPTH; d += 32, b += 16 * MATRIX_COLS)
        block_step(a + d, DEPTH, b, b + DEPTH / 2 * MATRIX_COLS, MATRIX_COLS, live, 2);
    block_store(scores, SCORE_STRIDE, live, 2);
}

/* sums[.. columns x 16] += weights x rows first[k] .. first[k] + 31 of the operand, for each k. */
struct sums_step {
    u32 at, first;
};

INLINE void sums_columns(float *sums, const u16 *weights, const u32 *pairs,
                         const struct sums_step *step, u32 steps, u32 live, u32 columns)
{
    block_load(sums, WIDTH, live, columns);
    for (u32 k = 0; k < steps; k++) {
        const u32 *b = pairs + (u64)step[k].first / 2 * WIDTH;
        block_step(weights + step[k].at, WEIGHT_STRIDE, b, b + 16, WIDTH, live, columns);
    }
    block_store(sums, WIDTH, live, columns);
}

static void sums_product(float *sums, const u16 *weights, const struct operand *o,
                         const struct sums_step *step, u32 steps, u32 live)
{
    u32 d = 0;
    for (; d + 32 <= WIDTH; d += 32)
        sums_columns(sums + d, weights, o->pairs + d, step, steps, live, 2);
    if (d < WIDTH)
        sums_columns(sums + d, weights, o->pairs + d, step, steps, live, 1);
}

#endif
