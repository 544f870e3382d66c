/* SPDX-License-Identifier: Apache-2.0 */
/* Products by tiles, 32 x 32 entries of C at a time. */
#ifndef MASKC_CPU_MATRIX_PRODUCT_AMX_H
#define MASKC_CPU_MATRIX_PRODUCT_AMX_H
#include "cpu/matrix/blocks.h"

/* ---- a block: four registers hold C, two the row blocks of A, two the column blocks of B ---- */

/* Row blocks of C to be worked on (bits of `live`), by column blocks (1 or 2). */
INLINE void block_zero(u32 live, u32 columns)
{
    if (live & 1) {
        TILE_ZERO(0);
        if (columns > 1)
            TILE_ZERO(1);
    }
    if (live & 2) {
        TILE_ZERO(2);
        if (columns > 1)
            TILE_ZERO(3);
    }
}

INLINE void block_load(const float *c, u32 stride, u32 live, u32 columns)
{
    if (live & 1) {
        TILE_LOAD(0, c, 4 * stride);
        if (columns > 1)
            TILE_LOAD(1, c + 16, 4 * stride);
    }
    if (live & 2) {
        TILE_LOAD(2, c + 16 * stride, 4 * stride);
        if (columns > 1)
            TILE_LOAD(3, c + 16 * stride + 16, 4 * stride);
    }
}

INLINE void block_store(float *c, u32 stride, u32 live, u32 columns)
{
    if (live & 1) {
        TILE_STORE(0, c, 4 * stride);
        if (columns > 1)
            TILE_STORE(1, c + 16, 4 * stride);
    }
    if (live & 2) {
        TILE_STORE(2, c + 16 * stride, 4 * stride);
        if (columns > 1)
            TILE_STORE(3, c + 16 * stride + 16, 4 * stride);
    }
}

/* One or two blocks of 16 columns, in rows of pairs, `stride` pairs apart; row k has elements 2 k and 2 k + 1. The
   second block begins `second` pairs behind the first. */
struct pair_columns {
    u32 stride, second, columns;
};

/* C += A B over a depth of 32. A: rows of bf16, stride_a apart. */
INLINE void block_step(const u16 *a, u32 stride_a, const u32 *pairs, struct pair_columns b,
                       u32 live)
{
    const u32 columns = b.columns;
    TILE_STREAM(6, pairs, 4 * b.stride);
    if (columns > 1)
        TILE_STREAM(7, pairs + b.second, 4 * b.stride);
    if (live & 1) {
        TILE_LOAD(4, a, 2 * stride_a);
        TILE_PRODUCT(0, 4, 6);
        if (columns > 1)
            TILE_PRODUCT(1, 4, 7);
    }
    if (live & 2) {
        TILE_LOAD(5, a + 16 * stride_a, 2 * stride_a);
        TILE_PRODUCT(2, 5, 6);
        if (columns > 1)
            TILE_PRODUCT(3, 5, 7);
    }
}

/* ---- products of blocks ---- */

/* Scores of a row block with two panels of 16 columns, in the blocks of rows whose bit of `live` is set. With `panels`
   1 the second panel's scores are zero. */
INLINE void panels_product(float *scores, const u16 *a, const float *b, u32 live, u32 panels)
{
    const struct pair_columns columns = {MATRIX_COLS, DEPTH / 2 * MATRIX_COLS, panels};
    block_zero(live, 2);
    for (u32 d = 0; d < DEPTH; d += 32, b += 16 * MATRIX_COLS)
        block_step(a + d, DEPTH, (const u32 *)(const void *)b, columns, live);
    block_store(scores, SCORE_STRIDE, live, 2);
}

/* sums[.. columns x 16] += p x rows in pairs, for each step. */
INLINE void sums_columns(float *sums, const u16 *p, u32 d, const struct sums_step *step,
                         u32 steps, struct sums_part x)
{
    const struct pair_columns b = {WIDTH, 16, x.columns};
    if (x.blank)
        block_zero(x.live, x.columns);
    else
        block_load(sums + d, WIDTH, x.live, x.columns);
    for (u32 k = 0; k < steps; k++)
        block_step(p + step[k].at, P_STRIDE, step[k].pairs + d, b, x.live);
    block_store(sums + d, WIDTH, x.live, x.columns);
}

/* ---- by one panel, the rows' tiles stay where they fit ---- */

enum { ROWS_STAY = DEPTH <= 64 };

INLINE void fused_rows(const u16 *a)
{
    if (!ROWS_STAY)
        return;
    TILE_LOAD(4, a, 2 * DEPTH);
    TILE_LOAD(6, a + 16 * DEPTH, 2 * DEPTH);
    if (DEPTH > 32) {
        TILE_LOAD(5, a + 32, 2 * DEPTH);
        TILE_LOAD(7, a + 16 * DEPTH + 32, 2 * DEPTH);
    }
}

/* Scores of the rows with the 16 columns of panel `half` of two. After both calls at least the scores of live rows and
   of the first `width` columns are there. */
INLINE void fused_panel(const u16 *a, const float *panels, u32 half, u32 width, u32 live,
                        float *to)
{
    enum { STEP = 16 * MATRIX_COLS };
    (void)width, (void)live;
    const float *b = panels + half * (DEPTH / 2 * MATRIX_COLS);
    to += half * MATRIX_COLS;
    TILE_STREAM(2, b, 4 * MATRIX_COLS);
    TILE_ZERO(0);
    TILE_ZERO(1);
    if (ROWS_STAY) {
        TILE_PRODUCT(0, 4, 2);
        TILE_PRODUCT(1, 6, 2);
        if (DEPTH > 32) {
            TILE_STREAM(3, b + STEP, 4 * MATRIX_COLS);
            TILE_PRODUCT(0, 5, 3);
            TILE_PRODUCT(1, 7, 3);
        }
    }
    for (u32 d = 0; d < DEPTH && !ROWS_STAY; d += 32, b += STEP) {
        TILE_STREAM(2, b, 4 * MATRIX_COLS);
        TILE_LOAD(4, a + d, 2 * DEPTH);
        TILE_LOAD(6, a + d + 16 * DEPTH, 2 * DEPTH);
        TILE_PRODUCT(0, 4, 2);
        TILE_PRODUCT(1, 6, 2);
    }
    TILE_STORE(0, to, 4 * SCORE_STRIDE);
    TILE_STORE(1, to + 16 * SCORE_STRIDE, 4 * SCORE_STRIDE);
}

/* ---- of one row ---- */

/* to[.. 16 x panels] = row x columns. A tile holds the row sixteen times, loaded from and stored to one place: the
   unit has time for that, and operands stay packed as row blocks use them. */
INLINE void one_row_scores(float *to, const u16 *row, const float *b, u32 panels)
{
    enum { PANEL = MATRIX_COLS * DEPTH / 2 };
    TILE_ZERO(0);
    TILE_ZERO(1);
    for (u32 d = 0; d < DEPTH; d += 32, b += 16 * MATRIX_COLS) {
        TILE_LOAD(4, row + d, 0);
        TILE_LOAD(6, b, 4 * MATRIX_COLS);
        TILE_LOAD(7, b + PANEL, 4 * MATRIX_COLS);
        TILE_PRODUCT(0, 4, 6);
        TILE_PRODUCT(1, 4, 7);
        if (panels < 4)
            continue;
        TILE_LOAD(6, b + 2 * PANEL, 4 * MATRIX_COLS);
        TILE_LOAD(7, b + 3 * PANEL, 4 * MATRIX_COLS);
        if (!d) {
            TILE_ZERO(2);
            TILE_ZERO(3);
        }
        TILE_PRODUCT(2, 4, 6);
        TILE_PRODUCT(3, 4, 7);
    }
    TILE_STORE(0, to, 0);
    TILE_STORE(1, to + MATRIX_COLS, 0);
    if (panels < 4)
        return;
    TILE_STORE(2, to + 2 * MATRIX_COLS, 0);
    TILE_STORE(3, to + 3 * MATRIX_COLS, 0);
}

/* sums[WIDTH] = p of `cols` columns x their rows in pairs. */
INLINE void one_row_sums(float *sums, const u16 *p, const u32 *pairs, u32 cols)
{
    u32 d = 0;
    for (; d + 64 <= WIDTH; d += 64) {
        const u32 *b = pairs + d;
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
        for (u32 c = 0; c < cols; c += TILE, b += TILE / 2 * WIDTH) {
            TILE_LOAD(4, p + c, 0);
            TILE_LOAD(6, b, 4 * WIDTH);
            TILE_LOAD(7, b + 16, 4 * WIDTH);
            TILE_PRODUCT(0, 4, 6);
            TILE_PRODUCT(1, 4, 7);
            TILE_LOAD(6, b + 32, 4 * WIDTH);
            TILE_LOAD(7, b + 48, 4 * WIDTH);
            TILE_PRODUCT(2, 4, 6);
            TILE_PRODUCT(3, 4, 7);
        }
        TILE_STORE(0, sums + d, 0);
        TILE_STORE(1, sums + d + 16, 0);
        TILE_STORE(2, sums + d + 32, 0);
        TILE_STORE(3, sums + d + 48, 0);
    }
    for (; d < WIDTH; d += 16) {
        const u32 *b = pairs + d;
        TILE_ZERO(0);
        for (u32 c = 0; c < cols; c += TILE, b += TILE / 2 * WIDTH) {
            TILE_LOAD(4, p + c, 0);
            TILE_LOAD(6, b, 4 * WIDTH);
            TILE_PRODUCT(0, 4, 6);
        }
        TILE_STORE(0, sums + d, 0);
    }
}

#endif
