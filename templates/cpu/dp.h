/* SPDX-License-Identifier: Apache-2.0 */
/* S and dP = dO V^T of a block, whatever the lowering. In the transposed plan LSE and delta belong to columns; they
   are subtracted here. */
#ifndef MASKC_CPU_DP_H
#define MASKC_CPU_DP_H
#include "cpu/scores.h"

#if MATRIX
#include "cpu/matrix/gradient.h"
#else
INLINE void panels_gradient(const struct row_block *t, struct block *b, float *delta_correction)
{
    (void)t, (void)b, (void)delta_correction;
}
#endif

static void panel_dp(const struct row_block *t, struct block *b, const struct column_tile *tile)
{
    float *to = &b->dp[0][tile->at];
    panel_product(t, tile, 1, to);
    panel_fill(to, blocks_idle(t, tile), 0);
}

static void list_dp(const struct row_block *t, struct block *b, const struct column_tile *tile)
{
    for (u32 r = 0; r < t->rows; r++) {
        const u32 *column = &b->column[r][tile->at];
        u32 count = list_count(column, tile->width);
        list_dots(t->m->row[1][r], &t->operand[1], column, count, &b->dp[r][tile->at]);
        for (u32 k = count; k < tile->width; k++)
            b->dp[r][tile->at + k] = 0;
    }
}

static void tile_drop_dp(const struct row_block *t, struct block *b,
                         const struct column_tile *tile)
{
    for (u32 r = 0; r < t->rows; r++)
        tile_drop(b, tile, r, t->s.a->keep_scale, b->dp[r]);
}

/* Transposed plan: subtracts LSE and delta of the columns, the same for every row. */
static void panel_subtract(const struct row_block *t, struct block *b,
                           const struct column_tile *tile)
{
    const float softmax_scale = MATRIX ? t->softmax_scale : 1;
    float offset[TILE], delta[TILE];
    for (u32 c = 0; c < TILE; c++) {
        u32 column = tile_column(t, tile, c < tile->width ? c : 0);
        offset[c] = c < tile->width ? score_offset(*lse_at(&t->s, column)) : 0;
        delta[c] = c < tile->width ? *delta_at(&t->s, column) : 0;
    }
    for (u32 r = 0; r < t->rows; r++)
        for (u32 c = 0; c < TILE; c += LANES) {
            float *score = &b->score[r][tile->at + c], *dp = &b->dp[r][tile->at + c];
            store(score, load(score) * softmax_scale - load(offset + c));
            store(dp, load(dp) - load(delta + c));
        }
}

static void list_subtract(const struct row_block *t, struct block *b,
                          const struct column_tile *tile)
{
    for (u32 r = 0; r < t->rows; r++) {
        const u32 *column = &b->column[r][tile->at];
        u32 count = list_count(column, tile->width);
        for (u32 k = 0; k < count; k++) {
            float *score = &b->score[r][tile->at + k];
            *score = *score * (MATRIX ? t->softmax_scale : 1) -
                     score_offset(*lse_at(&t->s, column[k]));
            b->dp[r][tile->at + k] -= *delta_at(&t->s, column[k]);
        }
    }
}

static void block_dp(const struct row_block *t, struct block *b)
{
    block_begin(t, b);
    for (u32 k = 0; k < b->tiles; k++) {
        const struct column_tile *tile = &b->tile[k];
        tile_scores(t, b, tile);
        if (tile_is_panel(tile))
            panel_dp(t, b, tile);
        else
            list_dp(t, b, tile);
        if (dropping(t))
            tile_drop_dp(t, b, tile);
        if (!t->transposed)
            continue;
        tile_scale_dp(t, b, tile);
        if (tile_is_panel(tile))
            panel_subtract(t, b, tile);
        else
            list_subtract(t, b, tile);
    }
    block_close(t, b);
}

#endif
