/* SPDX-License-Identifier: Apache-2.0 */
/* Gathered columns: up to 32 from anywhere, which rows of the row block share. They are copied to the scratch,
   transposed for scores and as rows for sums, and then multiplied as a panel. (For a matrix unit:
   matrix/gathered.h.) */
#ifndef MASKC_CPU_COLUMNS_H
#define MASKC_CPU_COLUMNS_H
#include "cpu/column_list.h"
#include "cpu/column_tile.h"
#include "cpu/pack/transpose.h"

#if !MATRIX
/* c = rows x gathered columns, for whole vectors of columns. */
static void columns_product(const struct row_block *t, const struct column_tile *tile,
                            u32 operand, float *c)
{
    static const float zero[HEAD_DIM];
    const struct operand *o = &t->operand[operand];
    const u32 *column = t->plan->columns + tile->first;
    float *panel = t->m->gather[0];
    u32 width = (tile->width + 2 * LANES - 1) / (2 * LANES) * (2 * LANES);
    for (u32 k = 0; k < width; k += 4) {
        const float *row[4];
        for (u32 x = 0; x < 4; x++)
            row[x] = k + x < tile->width ? operand_row(o, column[k + x]) : zero;
        for (u32 d = 0; d < HEAD_DIM; d += 4)
            transpose_quads(row, d, panel + d * GATHER_STRIDE + k, GATHER_STRIDE);
    }
    for (u32 from = 0; from < width; from += 2 * LANES)
        for (u32 k = 0; k < BLOCKS; k++)
            if (tile->live >> k & 1)
                product_2(
                    c + k * MICRO_ROWS * SCORE_STRIDE + from,
                    t->m->row[operand][k * MICRO_ROWS], panel + from,
                    (struct product_shape){SCORE_STRIDE, WIDTH, GATHER_STRIDE, HEAD_DIM, 0});
}

static void columns_sums(const struct row_block *t, const struct block *b,
                         const struct column_tile *tile, const float (*p)[SCORE_STRIDE],
                         u32 operand, float (*sums)[WIDTH])
{
    const u32 *column = t->plan->columns + tile->first;
    float *rows = t->m->gather[0];
    (void)b;
    for (u32 k = 0; k < tile->width; k++)
        for (u32 d = 0; d < WIDTH; d += LANES)
            store(rows + k * WIDTH + d, load(operand_row(&t->operand[operand], column[k]) + d));
    for (u32 k = 0; k < BLOCKS; k++) {
        if (!(tile->live >> k & 1))
            continue;
        const float *a = p[k * MICRO_ROWS] + tile->at;
        float *c = sums[k * MICRO_ROWS];
        u32 d = 0;
        for (; d + 2 * LANES <= WIDTH; d += 2 * LANES)
            product_2(c + d, a, rows + d,
                      (struct product_shape){WIDTH, SCORE_STRIDE, WIDTH, tile->width, 1});
        if (d < WIDTH)
            product_1(c + d, a, rows + d,
                      (struct product_shape){WIDTH, SCORE_STRIDE, WIDTH, tile->width, 1});
    }
}
#endif

/* Which entries of a tile dropout keeps: word r, bit c. Rows side by side. */
static void columns_keep(const struct row_block *t, const struct column_tile *tile,
                         u32 keep[BLOCK_ROWS])
{
    enum { ROWS = 16 };
    const struct draw of = draw_of(t);
    for (u32 first = 0; first < BLOCK_ROWS; first += ROWS) {
        const struct draw_step row = {(i32)(t->item->row0 + first), 1};
        uvec word[ROWS / LANES] = {{0}};
        for (u32 k = 0; k < tile->width; k++) {
            const struct draw_step column = {(i32)tile_column(t, tile, k), 0};
            const u32 bits =
                t->transposed ? draw_line(&of, column, row, 1) : draw_line(&of, row, column, 1);
            for (u32 v = 0; v < ROWS / LANES; v++)
                word[v] |= (uvec)mask_of_bits(bits >> v * LANES) & 1u << k;
        }
        for (u32 v = 0; v < ROWS / LANES; v++)
            *(uvec_at *)(keep + first + v * LANES) = word[v];
    }
}

/* The same entry by entry, where rows are a step apart. */
static void entries_keep(const struct row_block *t, const struct column_tile *tile,
                         u32 keep[BLOCK_ROWS])
{
    for (u32 first = 0; first < BLOCK_ROWS; first += CALLS) {
        const wide row = t->item->row0 + wide_count(first) * (u64)t->item->step;
        wide word = {0};
        for (u32 k = 0; k < tile->width; k++)
            word |= keep_entries(t, row, wide_splat(tile_column(t, tile, k))) & (u64)1 << k;
        wide_narrow(keep + first, word);
    }
}

#endif
