/* SPDX-License-Identifier: Apache-2.0 */
/* Panels: up to 32 columns that all rows of the row block share (tiles, ranges, gathered columns), by matrix products.
   Stores are 32 columns wide; the next tile, or the end of the block, overwrites what is beyond a tile's width. */
#ifndef MASKC_CPU_PANELS_H
#define MASKC_CPU_PANELS_H
#include "cpu/columns.h"
#if MATRIX
#include "cpu/matrix/gathered.h"
#endif

static void panel_fill(float *to, u32 blocks, float value)
{
    for (u32 k = 0; k < BLOCKS; k++)
        for (u32 r = k * MICRO_ROWS; (blocks >> k & 1) && r < (k + 1) * MICRO_ROWS; r++)
            for (u32 c = 0; c < TILE; c += LANES)
                store(to + r * SCORE_STRIDE + c, splat(value));
}

/* Scores of a vector whose bit is 0 become -inf. */
INLINE void bits_keep(float *at, u32 bits)
{
#if MATRIX
    lanes_exclude(at, ~bits);
#else
    store(at, pick(mask_of_bits(bits), load(at), splat(-INFINITY_F)));
#endif
}

/* Scores outside the tile's pattern become -inf. */
static void pattern_apply(const struct row_block *t, float *to, const struct column_tile *tile)
{
    const u32 *pattern = t->plan->patterns + (u64)(tile->pattern - 1) * BLOCK_ROWS;
    const u32 *next = tile->next ? t->plan->patterns + (u64)(tile->next - 1) * BLOCK_ROWS : 0;
    const u32 live = tile->live;
    for (u32 r = 0; r < BLOCK_ROWS; r++) {
        u32 word = pattern[r] >> tile->shift;
        if (next)
            word |= next[r] << (TILE - tile->shift);
        if (!(live >> (r / MICRO_ROWS) & 1) || word == 0xffffffff)
            continue;
        for (u32 c = 0; c < TILE; c += LANES)
            bits_keep(to + r * SCORE_STRIDE + c, word >> c);
    }
}

/* Scores of columns that do not count become -inf: a matrix unit takes 32 columns where the tile has fewer. */
static void panel_cut(float *to, u32 columns, u32 rows)
{
    for (u32 r = 0; r < rows; r++)
        for (u32 c = 0; c < TILE; c += LANES)
            bits_keep(to + r * SCORE_STRIDE + c, columns >> c);
}

static void panel_skip(const struct row_block *t, struct block *b,
                       const struct column_tile *tile)
{
    for (u32 r = 0; r < t->rows; r++)
        for (u32 c = tile->at - tile->gap; c < tile->at; c++) {
            b->score[r][c] = -INFINITY_F;
            if (BACKWARD)
                b->dp[r][c] = 0;
        }
}

/* c = rows x the tile's columns of operand 0 or 1, in the blocks of rows that are live. */
static void panel_product(const struct row_block *t, const struct column_tile *tile,
                          u32 operand, float *c)
{
    if (tile->kind == TILE_GATHERED)
        columns_product(t, tile, operand, c);
    else
        scores_product(c, block_rows(t, operand), &t->operand[operand], tile->first,
                       tile->live);
}

/* apply_mask: inactive scores become -inf. */
static void panel_apply_mask(const struct row_block *t, const struct column_tile *tile,
                             float *to)
{
    if (tile->pattern)
        pattern_apply(t, to, tile);
    if (MATRIX && tile->columns != 0xffffffff)
        panel_cut(to, tile->columns, t->rows);
}

#if MATRIX
/* A word for each row, bit c: it sees column c of the tile; null where all rows see all. `workspace` holds them where
   the plan does not. This is the mask of fused loops, where inactive scores are skipped, not set to -inf. */
static const u32 *tile_words(const struct row_block *t, const struct column_tile *tile,
                             u32 *workspace)
{
    const u32 *words = t->plan->patterns;
    const u32 *pattern = tile->pattern ? words + (u64)(tile->pattern - 1) * BLOCK_ROWS : 0;
    const u32 *next = tile->next ? words + (u64)(tile->next - 1) * BLOCK_ROWS : 0;
    if (!pattern && tile->columns == 0xffffffff)
        return 0;
    if (pattern && !tile->shift && tile->columns == 0xffffffff)
        return pattern;
    for (u32 r = 0; r < BLOCK_ROWS; r++) {
        u32 word = pattern ? pattern[r] >> tile->shift : 0xffffffff;
        word |= next ? next[r] << (TILE - tile->shift) : 0;
        workspace[r] = word & tile->columns;
    }
    return workspace;
}
#endif

INLINE u32 blocks_idle(const struct row_block *t, const struct column_tile *tile)
{
    return ((1u << (t->rows / MICRO_ROWS)) - 1) & ~tile->live;
}

static void panel_scores(const struct row_block *t, struct block *b,
                         const struct column_tile *tile)
{
    float *to = &b->score[0][tile->at];
    panel_product(t, tile, 0, to);
    panel_apply_mask(t, tile, to);
    panel_fill(to, blocks_idle(t, tile), -INFINITY_F);
    if (tile->gap)
        panel_skip(t, b, tile);
}

/* Which entries of a tile dropout keeps: word r, bit c. */
static void panel_keep(const struct row_block *t, const struct column_tile *tile,
                       u32 keep[BLOCK_ROWS])
{
    if (t->item->step != 1)
        entries_keep(t, tile, keep);
    else if (tile->kind == TILE_PANEL)
        keep_columns(t, tile->first, keep);
    else
        columns_keep(t, tile, keep);
}

/* Sums over the columns of tiles from `k` on that go together. Returns the next tile. */
#if MATRIX
static u32 panel_sums(const struct row_block *t, const struct block *b, u32 k,
                      const float (*p)[SCORE_STRIDE], u32 operand, u32 which)
{
    struct sums_step step[P_STRIDE / TILE];
    u32 steps = 0, kept = 0, live = b->tile[k].live;
    for (; k < b->tiles && tile_is_panel(&b->tile[k]) && b->tile[k].live == live; k++) {
        const struct column_tile *tile = &b->tile[k];
        const u32 *pairs = t->operand[operand].pairs + (u64)tile->first / 2 * WIDTH;
        if (tile->kind == TILE_GATHERED) {
            if (kept++ == GATHERED) /* the first one is about to go */
                break;
            pairs = gathered_pairs(t, tile, operand);
        }
        step[steps++] = (struct sums_step){tile->at, pairs};
    }
    const u16 *rounded = b->p_ds[p != (const float(*)[SCORE_STRIDE])b->score][0];
    sums_product(t->m->sums[which][0], rounded, step, steps, live, t->m->blank[which]);
    t->m->blank[which] = 0;
    return k;
}
#else
static u32 panel_sums(const struct row_block *t, const struct block *b, u32 k,
                      const float (*p)[SCORE_STRIDE], u32 operand, u32 which)
{
    enum { MOST = 256 };
    const struct column_tile *tile = &b->tile[k];
    u32 width = tile->width;
    for (k++; k < b->tiles && width < MOST; k++) {
        const struct column_tile *n = &b->tile[k];
        if (n->kind != TILE_PANEL || n->first != tile->first + width || n->live != tile->live)
            break;
        width += n->width;
    }
    sums_product(t->m->sums[which][0], p[0] + tile->at, &t->operand[operand], tile->first,
                 width, tile->live);
    return k;
}
#endif

#endif
