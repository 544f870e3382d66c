/* SPDX-License-Identifier: Apache-2.0 */
/* compute_qk, apply_mask and online_softmax of a block in one go, on a matrix unit: each column tile goes from the
   unit's stores to P in bf16 while it lies in L1. For blocks of panels and gathered columns.
     for each two tiles J
         S = Q K_J^T                          fused_qk
         m = rowmax S of the first tile that the row sees      fused_bases
         P = 2^(S - m) inside the mask,  l += rowsum P         fused_p
   m is not the running maximum, so O and l are never rescaled; a float holds p above 1. If l leaves the safe
   range, fused_softmax fails and matrix/softmax.h does the block again. Products of two tiles come first, then
   their P: a product occupies a port that half of the vector instructions want, so overlap gains nothing, and a
   product in front of an instruction that others wait for costs time. */
#ifndef MASKC_CPU_MATRIX_FUSED_SOFTMAX_H
#define MASKC_CPU_MATRIX_FUSED_SOFTMAX_H
#include "cpu/p_rounded.h"
#include "cpu/panels.h"

enum { TOGETHER = 2 }; /* column tiles */

/* Largest l: with it p V does not overflow for values up to 2^97. */
#define FUSED_SUM_MAX 0x1p30f

/* True where the block has only panels and gathered columns, and nothing needs scores or p as floats. Sparsegen needs
   them where tau or delta of the row block's rows come from all blocks. */
INLINE int panels_alone(const struct row_block *t, const struct block *b)
{
    return !BIAS && !b->lists && (IS_SOFTMAX || t->transposed);
}

/* Maximum of row r's scores in the tile, lane by lane. */
INLINE vec fused_tile_max(const float *score, const u32 *word, u32 r)
{
    vec low = load(score), high = load(score + LANES);
    if (!word)
        return larger(low, high);
    return larger(lanes_seen(low, word[r]), lanes_seen(high, word[r] >> LANES));
}

/* Sets m of the rows that see their first entry in this tile. Returns the rows that have seen none yet. `base` is
   what is subtracted from scores: m, or 0 for those rows. */
static u32 fused_bases(const struct row_block *t, const float *score, const u32 *word, u32 live,
                       float *base)
{
    struct row_block_memory *m = t->m;
    const quad none = {-INFINITY_F, -INFINITY_F, -INFINITY_F, -INFINITY_F};
    u32 unseen = 0;
    for (u32 r = 0; r < t->rows; r += 4, score += 4 * SCORE_STRIDE) {
        quad old = *(quad_at *)(m->row_max + r);
        quad_mask fresh = old == none;
        if (live >> (r / MICRO_ROWS) & 1) {
            vec x[4];
            for (u32 k = 0; k < 4; k++)
                x[k] = fused_tile_max(score + k * SCORE_STRIDE, word, r + k);
            quad now = max4(x[0], x[1], x[2], x[3]) * t->softmax_scale;
            old = (quad)(((quad_mask)now & fresh) | ((quad_mask)old & ~fresh));
            *(quad_at *)(m->row_max + r) = old;
            fresh = old == none;
        }
        *(quad_at *)(base + r) = (quad)((quad_mask)old & ~fresh);
        for (u32 k = 0; k < 4; k++)
            unseen |= (u32)(fresh[k] & 1) << (r + k);
    }
    return unseen & t->live;
}

/* ---- products ---- */

/* A column tile and where its scores are. */
struct scored {
    const struct column_tile *tile;
    const float *score;
};

/* Scores of the rows with the tile's columns, in halves of 16 columns that are not empty. */
static struct scored fused_qk(const struct row_block *t, const struct column_tile *tile,
                              float *score)
{
    const float *panels = tile->kind == TILE_GATHERED
                              ? gathered_panels(t, tile, 0)
                              : t->operand[0].panels + (u64)tile->first * (DEPTH / 2);
    for (u32 half = 0; half < TILE / MATRIX_COLS; half++)
        if (tile->width > half * MATRIX_COLS)
            fused_panel(block_rows(t, 0), panels, half, tile->width, tile->live, score);
    return (struct scored){tile, score};
}

/* ---- p ---- */

/* Data of the rows: the tile's words (tile_words()) and dropout's, each or null, the offsets subtracted from scores
   (fused_bases), and the sums of P. */
struct fused_terms {
    const u32 *word, *keep;
    const float *base;
    vec *sum;
};

/* Scores of a tile in block `k` of rows to P; adds P to the rows' sums. */
INLINE void fused_p(const struct row_block *t, struct block *b, struct scored x,
                    struct fused_terms rows, u32 k, u32 prefetch)
{
    const float *score = x.score, *base = rows.base;
    const u32 *word = rows.word, *keep = DROPOUT ? rows.keep : 0;
    vec *sum = rows.sum;
    const u32 at = x.tile->at;
    const vec softmax_scale = splat(t->softmax_scale);
    if (word)
        for (u32 r = k * MICRO_ROWS; r < (k + 1) * MICRO_ROWS; r++) {
            prefetch_rows(t->prefetch, prefetch);
            sum[r] +=
                pair_exp2_seen(score + r * SCORE_STRIDE, &b->p_ds[0][r][at], splat(base[r]),
                               softmax_scale, word[r], keep ? keep + r : 0);
        }
    else if (keep)
        for (u32 r = k * MICRO_ROWS; r < (k + 1) * MICRO_ROWS; r++) {
            prefetch_rows(t->prefetch, prefetch);
            sum[r] += pair_exp2_kept(score + r * SCORE_STRIDE, &b->p_ds[0][r][at],
                                     splat(base[r]), softmax_scale, keep[r]);
        }
    else
        for (u32 r = k * MICRO_ROWS; r < (k + 1) * MICRO_ROWS; r++) {
            prefetch_rows(t->prefetch, prefetch);
            sum[r] += pair_exp2((float *)score + r * SCORE_STRIDE, &b->p_ds[0][r][at],
                                splat(base[r]), softmax_scale, 0);
        }
}

/* Adds to l. Returns 0, with l as before, where some row's sum is too large or NaN. */
static int fused_close(const struct row_block *t, const vec *sum)
{
    float total[BLOCK_ROWS] = {0};
    u32 safe = 0;
    for (u32 r = 0; r < t->rows; r += 4)
        *(quad_at *)(total + r) = sum4(sum[r], sum[r + 1], sum[r + 2], sum[r + 3]);
    for (u32 r = 0; r < BLOCK_ROWS; r += LANES) {
        vec l = load(t->m->total + r) + load(total + r);
        store(total + r, l);
        safe |= lanes_larger(splat(FUSED_SUM_MAX), l) << r;
    }
    if (~safe)
        return 0;
    for (u32 r = 0; r < BLOCK_ROWS; r += LANES)
        store(t->m->total + r, load(total + r));
    return 1;
}

static int fused_softmax(const struct row_block *t, struct block *b)
{
    float base[BLOCK_ROWS];
    vec sum[BLOCK_ROWS];
    u32 unseen = 0xffffffff, workspace[BLOCK_ROWS], keep[BLOCK_ROWS];
    const u32 prefetch = prefetch_share(t->prefetch, b->tiles * t->rows);
    if (!panels_alone(t, b))
        return 0;
    for (u32 r = 0; r < t->rows; r++)
        sum[r] = splat(0);
    fused_rows(block_rows(t, 0));
    for (u32 first = 0; first < b->tiles; first += TOGETHER) {
        const u32 left = b->tiles - first, count = left < TOGETHER ? left : TOGETHER;
        struct scored now[TOGETHER];
        for (u32 k = 0; k < count; k++)
            now[k] = fused_qk(t, &b->tile[first + k], b->score[0] + k * TILE);
        for (u32 k = 0; k < count; k++) {
            const struct column_tile *tile = now[k].tile;
            const struct fused_terms rows = {tile_words(t, tile, workspace),
                                             dropping(t) ? keep : 0, base, sum};
            if (dropping(t))
                panel_keep(t, tile, keep);
            if (unseen)
                unseen = fused_bases(t, now[k].score, rows.word, tile->live, base);
            for (u32 half = 0; half < BLOCKS; half++)
                if (tile->live >> half & 1)
                    fused_p(t, b, now[k], rows, half, prefetch);
        }
    }
    return fused_close(t, sum);
}

#endif
