/* SPDX-License-Identifier: Apache-2.0 */
/* A bias X, an array learnt beside the compiled mask: added to the scores (add) or multiplied with the probabilities
   (scale). X of a column tile is loaded with the tile's scores, as 0 where a row does not see the column, so nothing
   else reads X outside the mask; after that all code runs in vectors along rows. In the forward plan the item that
   owns a row adds its dX to the caller's array, sequence after sequence. */
#ifndef MASKC_CPU_BIAS_H
#define MASKC_CPU_BIAS_H
#include "cpu/column_list.h"
#include "cpu/column_tile.h"
#include "cpu/pack/transpose.h"

#if BIAS

/* Factor of X before it is added to the block's scores. */
INLINE float bias_score_scale(const struct row_block *t)
{
    return (IS_SOFTMAX ? LOG2_E : 1.0f) / (MATRIX ? t->softmax_scale : 1);
}

/* End of a tile's score columns. With a matrix unit a panel has 32, those beyond its width inactive. */
INLINE u32 tile_end(const struct column_tile *tile)
{
    return tile->at + (MATRIX && tile_is_panel(tile) ? TILE : tile->width);
}

/* Offset of row i of X. */
INLINE u64 bias_at(const struct row_block *t, u32 i)
{
    u64 n = t->s.a->forward.n;
    return ((u64)t->s.h * n + i) * n;
}

/* ---- X to the block ---- */

/* A vector of X at row r, column c. Inactive scores stay -inf; inactive X becomes 0. */
INLINE void bias_vector(struct block *b, u32 r, u32 c, vec x, float score_scale)
{
    vec score = load(&b->score[r][c]);
    ivec active = (ivec)(score > splat(-INFINITY_F));
    if (BIAS == ABI_BIAS_ADD)
        store(&b->score[r][c], pick(active, score + x * splat(score_scale), score));
    else
        store(&b->bias[r][c], pick_or_zero(active, x));
}

INLINE void bias_entry(struct block *b, u32 r, u32 c, float x, float score_scale)
{
    int active = b->score[r][c] > -INFINITY_F;
    if (BIAS == ABI_BIAS_ADD)
        b->score[r][c] += active ? x * score_scale : 0;
    else
        b->bias[r][c] = active ? x : 0;
}

/* X of row r, for the columns of a tile. */
INLINE void bias_keys(const struct row_block *t, struct block *b,
                      const struct column_tile *tile, u32 r, const float *x, float score_scale)
{
    const u32 *column = &b->column[r][tile->at];
    if (tile->kind == TILE_PANEL) {
        u32 c = 0;
        for (; c + LANES <= tile->width; c += LANES)
            bias_vector(b, r, tile->at + c, load(x + tile->first + c), score_scale);
        for (; c < tile->width; c++)
            bias_entry(b, r, tile->at + c, x[tile->first + c], score_scale);
        return;
    }
    u32 count = tile->kind == TILE_GATHERED ? tile->width : list_count(column, tile->width);
    for (u32 c = 0; c < count; c++)
        bias_entry(b, r, tile->at + c,
                   x[tile->kind == TILE_GATHERED ? tile_column(t, tile, c) : column[c]],
                   score_scale);
    for (u32 c = count; c < tile->width; c++)
        bias_entry(b, r, tile->at + c, 0, score_scale);
}

/* Forward plan: X of a tile, and dX if it is written, is prefetched with the tile's scores. A row block's rows of X lie
   as far apart as a page, so hardware does not. */
static void bias_prefetch(const struct row_block *t, const struct column_tile *tile)
{
    const float *x = t->s.a->bias + bias_at(t, t->item->row0) + tile->first;
    const float *d_x = BACKWARD && t->s.a->d_bias ? t->s.a->d_bias + (x - t->s.a->bias) : 0;
    const u64 row = (u64)t->item->step * t->s.a->forward.n;
    for (u32 r = 0; r < t->item->rows && tile->kind == TILE_PANEL; r++)
        for (u32 c = 0; c < TILE; c += 16) {
            __builtin_prefetch(x + r * row + c, 0, 2);
            if (d_x)
                __builtin_prefetch(d_x + r * row + c, 1, 2);
        }
}

/* Forward plan, after the scores of all tiles: each row of X is read once, from end to end. */
static void block_bias(const struct row_block *t, struct block *b)
{
    const float score_scale = bias_score_scale(t);
    for (u32 r = 0; r < t->rows && !t->transposed; r++) {
        const float *x = t->s.a->bias + bias_at(t, row_of(t->item, r));
        if (MATRIX || !row_live(t, r))
            for (u32 c = 0; c < b->cols; c += LANES)
                store(&b->bias[r][c], splat(0));
        for (u32 k = 0; k < b->tiles && row_live(t, r); k++)
            bias_keys(t, b, &b->tile[k], r, x, score_scale);
    }
}

/* Transposed plan: columns are queries, whose rows of X are far apart. Prefetches those of the next tile. */
static void bias_ask(const struct row_block *t, const struct column_tile *tile)
{
    const u32 row0 = t->item->row0, n = t->s.a->forward.n;
    for (u32 c = 0; c < TILE && tile->kind == TILE_PANEL; c++) {
        u32 i = tile->first + TILE + c;
        if (i >= n)
            return;
        const float *x = t->s.a->bias + bias_at(t, i) + row0;
        __builtin_prefetch(x);
        __builtin_prefetch(x + 16);
    }
}

/* Transposed plan: X of a panel whose keys are a step apart. */
static void bias_read_stepped(const struct row_block *t, struct block *b,
                              const struct column_tile *tile)
{
    const u32 rows = t->item->rows, step = t->item->step;
    for (u32 c = 0; c < tile->width; c++) {
        const float *x = t->s.a->bias + bias_at(t, tile_column(t, tile, c)) + t->item->row0;
        for (u32 r = 0; r < rows; r++)
            b->bias[r][tile->at + c] = x[(u64)r * step];
    }
}

/* Transposed plan: X of a panel, four queries and four keys at a time. */
static void bias_read_keys(const struct row_block *t, struct block *b,
                           const struct column_tile *tile)
{
    const u32 row0 = t->item->row0, n = t->s.a->forward.n;
    bias_ask(t, tile);
    for (u32 c = 0; c < tile->width; c += 4) {
        const float *from[4];
        for (u32 k = 0; k < 4; k++) {
            u32 column = c + k < tile->width ? c + k : tile->width - 1;
            from[k] = t->s.a->bias + bias_at(t, tile_column(t, tile, column)) + row0;
        }
        for (u32 r = 0; r < t->rows && row0 + r < n; r += 4) {
            float *to = &b->bias[r][tile->at + c];
            if (row0 + r + 4 <= n)
                transpose_quads(from, r, to, SCORE_STRIDE);
            else
                for (u32 x = 0; x < 4 && row0 + r + x < n; x++)
                    for (u32 k = 0; k < 4; k++)
                        to[x * SCORE_STRIDE + k] = from[k][r + x];
        }
    }
}

static void bias_queries(const struct row_block *t, struct block *b,
                         const struct column_tile *tile)
{
    const float score_scale = bias_score_scale(t);
    if (t->item->step == 1)
        bias_read_keys(t, b, tile);
    else
        bias_read_stepped(t, b, tile);
    for (u32 r = 0; r < t->rows; r++)
        for (u32 c = tile->at - tile->gap; c < tile_end(tile); c += LANES)
            bias_vector(b, r, c, row_live(t, r) ? load(&b->bias[r][c]) : splat(0), score_scale);
}

/* Transposed plan, after the tile's scores. */
static void tile_bias(const struct row_block *t, struct block *b,
                      const struct column_tile *tile)
{
    if (!t->transposed) {
        bias_prefetch(t, tile);
        return;
    }
    if (tile_is_panel(tile)) {
        bias_queries(t, b, tile);
        return;
    }
    for (u32 r = 0; r < t->rows; r++) {
        const u32 *column = &b->column[r][tile->at], row = row_of(t->item, r);
        u32 count = list_count(column, tile->width);
        for (u32 k = 0; k < tile->width; k++)
            bias_entry(b, r, tile->at + k,
                       k < count ? t->s.a->bias[bias_at(t, column[k]) + row] : 0,
                       bias_score_scale(t));
    }
}

INLINE void bias_close(struct block *b, u32 r, u32 c)
{
    b->bias[r][c] = 0;
}

/* ---- scale ---- */

/* x times X, for a vector of row r at column c. */
INLINE vec bias_scaled(const struct block *b, u32 r, u32 c, vec x)
{
    return BIAS == ABI_BIAS_SCALE ? x * load(&b->bias[r][c]) : x;
}

/* P times X, as the product with V takes it. */
static void block_scale(const struct row_block *t, struct block *b)
{
    if (BIAS == ABI_BIAS_SCALE)
        for (u32 r = 0; r < t->rows; r++)
            for (u32 c = 0; c < b->cols; c += LANES)
                store(&b->score[r][c], bias_scaled(b, r, c, load(&b->score[r][c])));
}

/* Transposed plan: dP of a tile times X. */
static void tile_scale_dp(const struct row_block *t, struct block *b,
                          const struct column_tile *tile)
{
    if (BIAS == ABI_BIAS_SCALE)
        for (u32 r = 0; r < t->rows; r++)
            for (u32 c = tile->at; c < tile->at + tile->width; c += LANES)
                store(&b->dp[r][c], bias_scaled(b, r, c, load(&b->dp[r][c])));
}

#else

INLINE void tile_bias(const struct row_block *t, struct block *b,
                      const struct column_tile *tile)
{
    (void)t, (void)b, (void)tile;
}

INLINE void bias_close(struct block *b, u32 r, u32 c)
{
    (void)b, (void)r, (void)c;
}

INLINE void block_bias(const struct row_block *t, struct block *b)
{
    (void)t, (void)b;
}

INLINE vec bias_scaled(const struct block *b, u32 r, u32 c, vec x)
{
    (void)b, (void)r, (void)c;
    return x;
}

INLINE void block_scale(const struct row_block *t, struct block *b)
{
    (void)t, (void)b;
}

INLINE void tile_scale_dp(const struct row_block *t, struct block *b,
                          const struct column_tile *tile)
{
    (void)t, (void)b, (void)tile;
}

#endif
#endif
