/* SPDX-License-Identifier: Apache-2.0 */
/* P and dS of a block of panels and gathered columns, on a matrix unit: each column tile goes from the unit's stores
   to P and dS in bf16. The floats that column lists and dropout need are not kept. */
#ifndef MASKC_CPU_MATRIX_GRADIENT_H
#define MASKC_CPU_MATRIX_GRADIENT_H
#include "cpu/p_rounded.h"
#include "cpu/panels.h"

/* LSE and delta of a tile's columns, for the transposed plan. */
struct subtrahends {
    float offset[TILE], delta[TILE];
};

static void gathered_read(const struct row_block *t, const struct column_tile *tile,
                          struct subtrahends *ret)
{
    for (u32 c = 0; c < TILE; c++) {
        u32 column = tile_column(t, tile, c < tile->width ? c : 0);
        ret->offset[c] = c < tile->width ? score_offset(*lse_at(&t->s, column)) : 0;
        ret->delta[c] = c < tile->width ? *delta_at(&t->s, column) : 0;
    }
}

static void columns_read(const struct row_block *t, const struct column_tile *tile,
                         struct subtrahends *ret)
{
    if (tile->kind == TILE_GATHERED || tile->width < TILE) {
        gathered_read(t, tile, ret);
        return;
    }
    const float base = IS_SOFTMAX ? LOG2_E : 1;
    const float *lse = lse_at(&t->s, tile->first), *delta = delta_at(&t->s, tile->first);
    for (u32 c = 0; c < TILE; c += LANES) {
        vec x = load(lse + c);
        store(ret->offset + c, pick_or_zero(~(ivec)(x == splat(-INFINITY_F)), x * base));
        store(ret->delta + c, load(delta + c));
    }
}

/* Data of two vectors of a row: scale of their scores, offset subtracted from the scores, delta subtracted from dP.
   With dropout: scale of kept entries, their bits (else null), and whether P is stored as dropped, for dV. Sparsegen: 1
   / (1 - lambda). */
struct pair_terms {
    vec softmax_scale, keep_scale, inverse;
    const vec *offset, *delta;
    const u32 *keep;
    int p_dropped;
};

INLINE vec pair_dp(const float *dp, const struct pair_terms *terms, u32 k)
{
    vec x = load(dp + k * LANES);
    if (terms->keep)
        x = lanes_kept(x * terms->keep_scale, *terms->keep >> (k * LANES));
    return x - terms->delta[k];
}

/* Two vectors of a row to P and dS, 0 where the column's bit is not set (null: all are). Returns the sum of dS, lane
   by lane. */
INLINE vec pair_gradient(const float *score, const float *dp, u16 *p, u16 *ds,
                         const struct pair_terms *terms, const u32 *bits)
{
    vec x[2], y[2];
    for (u32 k = 0; k < 2; k++) {
        vec s = load(score + k * LANES) * terms->softmax_scale - terms->offset[k];
        if (IS_SOFTMAX) {
            x[k] = bits ? exp2_seen(s, *bits >> (k * LANES)) : exp2_half(s);
            y[k] = x[k] * pair_dp(dp, terms, k);
            continue;
        }
        const u32 above = lanes_larger(s, splat(0)) & (bits ? *bits >> (k * LANES) : ~0u);
        x[k] = lanes_zeroed(s * terms->inverse, above);
        y[k] = lanes_zeroed(pair_dp(dp, terms, k) * terms->inverse, above);
    }
    pair_store(p, x[0], x[1], terms->p_dropped ? terms->keep : 0);
    half_store2(ds, y[0], y[1]);
    return y[0] + y[1];
}

/* A tile; the mask words of its rows (tile_words()); their dropout bits or null; the column of the
   block where its scores and dP begin; for the transposed plan, LSE and delta of its columns. */
struct gradient_tile {
    const struct column_tile *tile;
    const u32 *word, *keep;
    u32 at;
    const struct subtrahends *column;
};

/* P and dS of a tile, in block `k` of rows. */
INLINE void tile_gradient(const struct row_block *t, struct block *b, struct gradient_tile x,
                          u32 k, u32 prefetch, vec *sum)
{
    const struct subtrahends *column = x.column;
    const struct column_tile *tile = x.tile;
    const float *score = b->score[0] + x.at, *dp = b->dp[0] + x.at;
    const u32 *word = x.word, *keep = DROPOUT ? x.keep : 0;
    vec offset[2] = {load(column->offset), load(column->offset + LANES)};
    vec delta[2] = {load(column->delta), load(column->delta + LANES)};
    struct pair_terms terms = {splat(t->softmax_scale),
                               splat(t->s.a->keep_scale),
                               splat(1 / (1 - t->s.a->lambda)),
                               offset,
                               delta,
                               0,
                               t->transposed};
    for (u32 r = k * MICRO_ROWS; r < (k + 1) * MICRO_ROWS; r++) {
        prefetch_rows(t->prefetch, prefetch);
        if (!t->transposed) {
            offset[0] = offset[1] = splat(t->m->offset[r]);
            delta[0] = delta[1] = splat(t->m->delta[r]);
        }
        terms.keep = keep ? keep + r : 0;
        vec ds = pair_gradient(score + r * SCORE_STRIDE, dp + r * SCORE_STRIDE,
                               &b->p_ds[0][r][tile->at], &b->p_ds[1][r][tile->at], &terms,
                               word ? word + r : 0);
        if (!t->transposed)
            sum[r] += ds;
    }
}

/* Tile by tile: products of the next tile run between the two blocks of rows of this one.
   delta_correction[r] += the sum of row r's dS. */
static void panels_gradient(const struct row_block *t, struct block *b, float *delta_correction)
{
    struct subtrahends column = {{0}, {0}};
    vec sum[BLOCK_ROWS];
    u32 workspace[BLOCK_ROWS], keep[BLOCK_ROWS];
    const u32 prefetch = prefetch_share(t->prefetch, b->tiles * t->rows);
    for (u32 r = 0; r < t->rows; r++)
        sum[r] = splat(0);
    panel_product(t, b->tile, 0, b->score[0]);
    panel_product(t, b->tile, 1, b->dp[0]);
    for (u32 k = 0; k < b->tiles; k++) {
        const struct column_tile *tile = &b->tile[k], *next = k + 1 < b->tiles ? tile + 1 : 0;
        const u32 at = k % 2 * TILE, to = TILE - at;
        const struct gradient_tile x = {tile, tile_words(t, tile, workspace),
                                        dropping(t) ? keep : 0, at, &column};
        if (dropping(t))
            panel_keep(t, tile, keep);
        if (t->transposed)
            columns_read(t, tile, &column);
        if (next)
            panel_product(t, next, 0, b->score[0] + to);
        if (tile->live & 1)
            tile_gradient(t, b, x, 0, prefetch, sum);
        if (next)
            panel_product(t, next, 1, b->dp[0] + to);
        if (tile->live & 2)
            tile_gradient(t, b, x, 1, prefetch, sum);
    }
    for (u32 r = 0; r < t->rows && !t->transposed; r++)
        delta_correction[r] += sum_lanes(sum[r]);
}

#endif
