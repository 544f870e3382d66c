/* SPDX-License-Identifier: Apache-2.0 */
/* delta_i = sum_j P_ij dP_ij, which dS = P (dP - delta) needs. Five ways to get it, in order of preference:
     one block has all columns: delta is summed up from P dP                        whole_backward
     with a bias and 16-bit tensors: a pass over P dP before the main loop          row_block_deltas_first
     ... where items share rows: a phase over P dP, which adds up what they leave   row_block_deltas_shared
     f32: delta = rowsum(dO o O), which equals it                                   row_block_deltas
     16 bits: the same as an estimate, since O is rounded. The main loop sums up dS, whose rows should sum to 0,
     and P K; at the end dQ -= delta_correction * P K                               delta_correction_*
   A row that sees one key has no gradient. Only P dP gives that almost exactly; dP - rowsum(dO o O) leaves what the
   order of additions does. */
#ifndef MASKC_CPU_DELTA_H
#define MASKC_CPU_DELTA_H
#include "cpu/dp.h"
#include "cpu/softmax.h"

/* The gradient of a bias is dS itself, so a correction at the end is too late: with O in 16 bits delta comes from
   P dP before the main loop. */
enum { DELTA_FIRST = BIAS && IS_SOFTMAX && !IS_F32 };

static void block_delta(const struct row_block *t, const struct block *b)
{
    const float softmax_scale = MATRIX ? t->softmax_scale : 1;
    for (u32 r = 0; r < t->rows; r++) {
        vec sum = {0};
        for (u32 c = 0; c < b->cols; c += LANES) {
            vec p = exp2_vec(load(&b->score[r][c]) * softmax_scale - splat(t->m->offset[r]));
            sum += p * bias_scaled(b, r, c, load(&b->dp[r][c]));
        }
        t->m->delta[r] += sum_lanes(sum);
    }
}

/* delta from a block that has all columns, with a bias. */
static void whole_deltas(const struct row_block *t, struct block *b)
{
    block_dp(t, b);
    for (u32 r = 0; r < t->rows; r++) {
        vec sum = {0}, p_sum = {0};
        for (u32 c = 0; c < b->cols; c += LANES) {
            vec p = exp2_vec(load(&b->score[r][c]) - splat(t->m->offset[r]));
            sum += p * bias_scaled(b, r, c, load(&b->dp[r][c]));
            p_sum += p;
        }
        t->m->delta[r] = delta_of(sum_lanes(sum), sum_lanes(p_sum));
    }
}

/* Returns 1 where one block has all columns, which then still holds S and dP; else the main loop computes them again. */
static int row_block_deltas_first(struct row_block *t)
{
    struct block *b = t->blocks;
    u32 tiles = 0, cols = 0, lists = 0, blocks = 0;
    for (u32 r = 0; r < t->rows; r++)
        t->m->delta[r] = row_merged(t, r) ? partial_numbers(t, r)[0] : 0;
    for (; block_next(t, b); blocks++) {
        block_dp(t, b);
        block_delta(t, b);
        tiles = b->tiles;
        cols = b->cols;
        lists = b->lists;
    }
    t->piece = t->entry = t->offset = 0;
    if (blocks != 1)
        return 0;
    b->tiles = tiles;
    b->cols = cols;
    b->lists = lists;
    return 1;
}

/* True where items share rows: then a phase before dQ (attention_delta) leaves delta of all rows in delta_at(). */
INLINE int deltas_shared(const struct abi_args *a)
{
    return DELTA_FIRST && a->forward.uses & ABI_SPLIT;
}

#if BIAS
/* Runs that phase for an item: a split item stores its part of the sums. */
static void row_block_deltas_shared(struct row_block *t)
{
    row_block_deltas_first(t);
    for (u32 r = 0; r < t->item->rows; r++) {
        if (!row_live(t, r))
            continue;
        float *to =
            t->item->split ? partial_numbers(t, r) : delta_at(&t->s, row_of(t->item, r));
        *to = t->m->delta[r];
    }
}

static void deltas_read(const struct row_block *t)
{
    for (u32 r = 0; r < t->rows && deltas_shared(t->s.a); r++)
        t->m->delta[r] = row_live(t, r) ? *delta_at(&t->s, row_of(t->item, r)) : 0;
}
#else
INLINE void deltas_read(const struct row_block *t)
{
    (void)t;
}
#endif

/* O rounded to 16 bits makes rowsum(dO o O) an estimate. Its error is the sum of a row's dS, the correction:
   dQ = sum dS K - delta_correction * sum P K. */
enum { DELTA_CORRECTED = IS_SOFTMAX && !IS_F32 && !BIAS };

static void delta_correction_add(const struct row_block *t, struct block *b,
                                 float *delta_correction)
{
    for (u32 r = 0; r < t->rows && !panels_alone(t, b); r++) {
        vec sum = {0};
        for (u32 c = 0; c < b->cols; c += LANES)
            sum += load(&b->dp[r][c]);
        delta_correction[r] += sum_lanes(sum);
    }
    block_sums(t, b, (const float(*)[SCORE_STRIDE])b->score, 0, 1);
}

static void delta_correction_apply(const struct row_block *t, const float *delta_correction)
{
    for (u32 r = 0; r < t->rows; r++) {
        t->m->delta[r] += delta_correction[r];
        for (u32 d = 0; d < WIDTH; d += LANES)
            store(&t->m->sums[0][r][d],
                  load(&t->m->sums[0][r][d]) -
                      splat(delta_correction[r]) * load(&t->m->sums[1][r][d]));
    }
}

/* O may overflow f16. The estimate only needs a finite number near it; see DELTA_CORRECTED. */
INLINE vec output_finite(vec o)
{
    const vec least = splat(-65504.0f);
    return IS_F16 ? -larger(least, -larger(least, o)) : o;
}

/* delta = rowsum(dO o O), where softmax's dQ takes it from O. */
static void row_block_deltas(const struct row_block *t)
{
    if (!IS_SOFTMAX || t->transposed || DELTA_FIRST)
        return;
    row_block_prefetch(t, &t->s.a->o, 0);
    if (MATRIX && !t->lists)
        row_block_read(t, &t->s.a->d_o, 1, t->m->row[1]);
    for (u32 r = 0; r < t->rows; r++) {
        t->m->delta[r] = 0;
        if (!row_live(t, r))
            continue;
        float o[WIDTH];
        vec sum = {0};
        row_read(&t->s, &t->s.a->o, row_of(t->item, r), 1, o);
        if (t->lists)
            row_deinterleave(o);
        for (u32 d = 0; d < WIDTH; d += LANES)
            sum += output_finite(load(o + d)) * load(&t->m->row[1][r][d]);
        t->m->delta[r] = sum_lanes(sum);
    }
}

/* A row whose columns are all in one block: S to P in floats. Returns the sum of P dP, lane by lane; for f32 adds up
   P in *p_sum too. `word`: the row's bits of each column tile, as tile_words() has them; null: inactive scores
   are -inf. */
INLINE vec row_whole(struct block *b, u32 r, vec offset, vec softmax_scale,
                     const u32 *const *word, vec *p_sum)
{
    vec sum = {0};
    for (u32 c = 0; c < b->cols; c += LANES) {
        vec s = load(&b->score[r][c]) * softmax_scale - offset, p;
#if MATRIX
        const u32 *seen = word ? word[c / TILE] : 0;
        p = seen ? exp2_seen(s, seen[r] >> c % TILE) : exp2_half(s);
#else
        (void)word;
        p = exp2_vec(s);
#endif
        store(&b->score[r][c], p);
        sum += p * load(&b->dp[r][c]);
        if (IS_F32)
            *p_sum += p;
    }
    return sum;
}

INLINE void row_whole_ds(struct block *b, u32 r, vec delta)
{
#if MATRIX
    for (u32 c = 0; c < b->cols; c += 2 * LANES)
        half_store2(&b->p_ds[1][r][c], load(&b->score[r][c]) * (load(&b->dp[r][c]) - delta),
                    load(&b->score[r][c + LANES]) * (load(&b->dp[r][c + LANES]) - delta));
    if (!b->lists)
        return;
#endif
    for (u32 c = 0; c < b->cols; c += LANES)
        store(&b->dp[r][c], load(&b->score[r][c]) * (load(&b->dp[r][c]) - delta));
}

#if MATRIX
enum { SLOTS = P_STRIDE / TILE };

/* The bits of a block of panels: its inactive scores are not -inf, so the bits say which scores count. */
struct whole_words {
    const u32 *word[SLOTS];
    u32 workspace[SLOTS][BLOCK_ROWS];
};

static const u32 *const *whole_block_dp(const struct row_block *t, struct block *b,
                                        struct whole_words *w)
{
    if (!panels_alone(t, b)) {
        block_dp(t, b);
        return 0;
    }
    if (dropping(t))
        block_keep(t, b);
    for (u32 k = 0; k < b->tiles; k++) {
        const struct column_tile *tile = &b->tile[k];
        panel_product(t, tile, 0, &b->score[0][tile->at]);
        panel_dp(t, b, tile);
        if (dropping(t))
            tile_drop_dp(t, b, tile);
        w->word[tile->at / TILE] = tile_words(t, tile, w->workspace[tile->at / TILE]);
    }
    return w->word;
}
#else
struct whole_words {
    int none;
};

INLINE const u32 *const *whole_block_dp(const struct row_block *t, struct block *b,
                                        struct whole_words *w)
{
    (void)w;
    block_dp(t, b);
    return 0;
}
#endif

static void whole_backward(const struct row_block *t, struct block *b)
{
    struct whole_words workspace;
    const vec softmax_scale = splat(MATRIX ? t->softmax_scale : 1);
    const u32 prefetch = prefetch_share(t->prefetch, t->rows);
    const u32 *const *word = whole_block_dp(t, b, &workspace);
    for (u32 first = 0; first < t->rows; first += 4) {
        vec sum[4] = {{0}}, p_sum[4] = {{0}};
        const u32 rows = t->rows - first < 4 ? t->rows - first : 4;
        for (u32 k = 0; k < rows; k++) {
            prefetch_rows(t->prefetch, prefetch);
            sum[k] = row_whole(b, first + k, splat(t->m->offset[first + k]), softmax_scale,
                               word, &p_sum[k]);
        }
        quad delta = sum4(sum[0], sum[1], sum[2], sum[3]);
        if (IS_F32) {
            const quad all = sum4(p_sum[0], p_sum[1], p_sum[2], p_sum[3]);
            for (u32 k = 0; k < 4; k++)
                delta[k] = delta_of(delta[k], all[k]);
        }
        *(quad_at *)(t->m->delta + first) = delta;
        for (u32 k = 0; k < rows; k++)
            row_whole_ds(b, first + k, splat(delta[k]));
    }
    block_sums(t, b, (const float(*)[SCORE_STRIDE])b->dp, 0, 0);
}

static int row_block_whole(const struct row_block *t)
{
    const struct abi_item *item = t->item;
    return IS_SOFTMAX && !t->transposed && !item->split && !item->merge[0] &&
           (t->piece == item->pieces ||
            (t->piece + 1 == item->pieces &&
             t->entry == t->plan->pieces[item->piece + t->piece].count));
}

#endif
