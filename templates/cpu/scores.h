/* SPDX-License-Identifier: Apache-2.0 */
/* The two products of a block, whatever the lowering of its column tiles: S = Q K^T and sums += P V. */
#ifndef MASKC_CPU_SCORES_H
#define MASKC_CPU_SCORES_H
#include "cpu/bias.h"
#include "cpu/list_keep.h"
#include "cpu/panels.h"
#include "cpu/partial.h"

/* Fills up the last vector of each row: loops run over whole vectors. */
static void block_close(const struct row_block *t, struct block *b)
{
    block_bias(t, b);
    for (u32 r = 0; r < t->rows; r++)
        for (u32 c = b->cols; c % (MATRIX ? TILE : LANES); c++) {
            b->score[r][c] = -INFINITY_F;
            if (BACKWARD)
                b->dp[r][c] = 0;
            bias_close(b, r, c);
        }
}

static void tile_scores(const struct row_block *t, struct block *b,
                        const struct column_tile *tile)
{
    if (tile_is_panel(tile))
        panel_scores(t, b, tile);
    else
        list_scores(t, b, tile);
    tile_bias(t, b, tile);
}

/* Number of a tile's columns that row r has. */
INLINE u32 tile_columns(const struct block *b, const struct column_tile *tile, u32 r)
{
    return tile_is_panel(tile) ? tile->width : list_count(&b->column[r][tile->at], tile->width);
}

/* Multiplies row r's numbers in a tile by `kept`; dropped ones become 0. A few numbers are handled
   one by one: a vector load would wait for the stores that have just written them. */
INLINE void tile_drop(const struct block *b, const struct column_tile *tile, u32 r, float kept,
                      float *row)
{
    enum { FEW = 4 };
    const u32 count = tile_columns(b, tile, r), end = tile->at + count;
    for (u32 c = tile->at; count < FEW && c < end; c++)
        row[c] = keep_word(b, r, c) & 1 ? row[c] * kept : 0;
    for (u32 c = tile->at; count >= FEW && c < end; c += LANES)
        store(row + c, lanes_kept(load(row + c) * kept, keep_word(b, r, c)));
}

#if MATRIX
/* Rounds row r's P of a panel to bf16 for the sums, 0 where dropped. Returns 0 for a list. */
INLINE int panel_drop(struct block *b, const struct column_tile *tile, u32 r)
{
    const float *p = &b->score[r][tile->at];
    if (tile_is_panel(tile))
        half_store2_kept(&b->p_ds[0][r][tile->at], load(p), load(p + LANES),
                         keep_word(b, r, tile->at));
    return tile_is_panel(tile);
}
#else
INLINE int panel_drop(struct block *b, const struct column_tile *tile, u32 r)
{
    (void)b, (void)tile, (void)r;
    return 0;
}
#endif

/* Dropped P become 0; those that a row does not have are 0. The scale of kept ones is applied to the sums. */
static void block_drop(const struct row_block *t, struct block *b)
{
    for (u32 k = 0; k < b->tiles; k++)
        for (u32 r = 0; r < t->rows; r++)
            if (!panel_drop(b, &b->tile[k], r))
                tile_drop(b, &b->tile[k], r, 1, b->score[r]);
}

/* Which entries dropout keeps. Draws of all lists come together, as a list may be short. */
static void block_keep(const struct row_block *t, struct block *b)
{
    u32 keep[BLOCK_ROWS];
    keep_clear(t, b);
    if (b->lists)
        lists_keep(t, b);
    for (u32 k = 0; k < b->tiles; k++) {
        const struct column_tile *tile = &b->tile[k];
        if (!tile_is_panel(tile))
            continue;
        panel_keep(t, tile, keep);
        for (u32 r = 0; r < t->rows; r++)
            keep_put(b, r, tile->at, tile->width, keep[r]);
    }
}

/* The columns of lists, and what dropout keeps. */
static void block_begin(const struct row_block *t, struct block *b)
{
    for (u32 k = 0; b->lists && k < b->tiles; k++)
        if (!tile_is_panel(&b->tile[k]))
            list_columns(t, b, &b->tile[k]);
    if (dropping(t))
        block_keep(t, b);
}

/* Masked scores of the block. */
static void compute_qk(const struct row_block *t, struct block *b)
{
    block_begin(t, b);
    for (u32 k = 0; k < b->tiles; k++)
        tile_scores(t, b, &b->tile[k]);
    block_close(t, b);
}

/* True where a product of this tile can start the sums, so that they need no zeros first. */
INLINE int tile_begins(const struct row_block *t, const struct column_tile *tile)
{
    return MATRIX && (tile->kind == TILE_PANEL || tile->kind == TILE_GATHERED) &&
           !(t->live_blocks & ~tile->live);
}

/* sums[which] += p x rows of the operand, where p is P or dS. */
static void block_sums(const struct row_block *t, const struct block *b,
                       const float (*p)[SCORE_STRIDE], u32 operand, u32 which)
{
    float(*sums)[WIDTH] = t->m->sums[which];
    if (b->tiles && !tile_begins(t, b->tile))
        row_block_zero_sums(t, which);
    for (u32 k = 0; k < b->tiles;) {
        const struct column_tile *tile = &b->tile[k];
        if (tile->kind == TILE_PANEL || (MATRIX && tile->kind == TILE_GATHERED))
            k = panel_sums(t, b, k, p, operand, which);
#if !MATRIX
        else if (tile->kind == TILE_GATHERED)
            columns_sums(t, b, &b->tile[k++], p, operand, sums);
#endif
        else
            list_sums(t, b, &b->tile[k++], p, operand, sums);
    }
}

/* O += P V. */
#define compute_pv(t, b) block_sums(t, b, (const float(*)[SCORE_STRIDE])(b)->score, 1, 0)

#endif
