/* SPDX-License-Identifier: Apache-2.0 */
/* A global row with one long range of columns, on a matrix unit: products with packed operands, all columns at once. */
#ifndef MASKC_CPU_MATRIX_GLOBAL_ROW_H
#define MASKC_CPU_MATRIX_GLOBAL_ROW_H
#include "cpu/global_row/row.h"
#include "cpu/p_rounded.h"
#include "cpu/softmax_rows.h"

#if MATRIX

_Static_assert(CPU_MATRIX_ROW_MOST(CPU_CHUNK_COLS(MATRIX, BIAS)) + 2 * TILE <=
                   BLOCK_ROWS * P_STRIDE,
               "P of the longest such row fits");

struct matrix_row {
    const struct sequence *s;
    u32 i; /* the row */
    u32 first,
        cols; /* columns of the products: from a multiple of 16, a multiple of 32 of them */
    u32 begin, end;      /* of those, the row's range */
    float softmax_scale; /* |scale|, in base 2 */
    u16 sign;            /* that of the scale goes into the row */
    float *score, *dp;
    u16 *p_ds[2];    /* P and dS in bf16 */
    const u32 *keep; /* dropout: bits of the products' columns; null: switched off */
};

/* Returns 0 where the row sees nothing. */
static int matrix_row_open(struct matrix_row *w, const struct sequence *s,
                           const struct abi_plan *p, const struct abi_item *item, u8 *scratch)
{
    const struct row_range at = row_range_of(s, p, item);
    struct block *b = (struct block *)(void *)(scratch + ROW_BLOCK_BYTES);
    const float scale = s->a->scale * LOG2_E;
    w->s = s;
    w->i = item->row0;
    w->first = at.first / MATRIX_COLS * MATRIX_COLS;
    w->begin = at.first - w->first;
    w->end = w->begin + at.count;
    w->cols = (w->end + TILE - 1) / TILE * TILE;
    w->sign = scale < 0 ? 0x8000 : 0;
    w->softmax_scale = scale < 0 ? -scale : scale;
    w->score = b->score[0];
    w->dp = b->dp[0];
    w->p_ds[0] = b->p_ds[0][0];
    w->p_ds[1] = b->p_ds[BACKWARD][0];
    w->keep = 0;
    if (w->i >= s->length || !at.count)
        return 0;
    w->keep = global_row_keep(s, w->i, (struct row_range){w->first, w->cols},
                              p == &s->a->transposed, b);
    return 1;
}

/* Products of the row of a tensor with the operand's columns; `fill` outside the row's range. */
static void matrix_row_products(const struct matrix_row *w, const struct abi_tensor *t,
                                u16 sign, enum operand_kind k, float fill, float *to)
{
    u16 row[DEPTH] = {0};
    const u16 *from = (const u16 *)t->data + element_at(w->s, t, w->i);
    const float *panels = pack_panels(w->s, k) + (u64)w->first * (DEPTH / 2);
    for (u32 d = 0; d < HEAD_DIM; d++)
        row[d] = from[d] ^ sign;
    u32 c = 0;
    for (; c + 2 * TILE <= w->cols; c += 2 * TILE)
        one_row_scores(to + c, row, panels + (u64)c * (DEPTH / 2), 4);
    if (c < w->cols)
        one_row_scores(to + c, row, panels + (u64)c * (DEPTH / 2), 2);
    for (c = 0; c < w->begin; c++)
        to[c] = fill;
    for (c = w->end; c < w->cols; c++)
        to[c] = fill;
}

/* Row i of a tensor = scale x sum of p x the operand's rows. */
static void matrix_row_put(const struct matrix_row *w, const struct abi_tensor *t, float scale,
                           const u16 *p, enum operand_kind k)
{
    float sums[WIDTH];
    one_row_sums(sums, p, pack_pairs(w->s, k) + (u64)w->first / 2 * WIDTH, w->cols);
    row_write(w->s, t, w->i, scale, sums);
}

static void matrix_row_forward(const struct sequence *s, const struct abi_item *item,
                               u8 *scratch)
{
    struct matrix_row w;
    if (item->row0 >= s->rows)
        return;
    if (!matrix_row_open(&w, s, &s->a->forward, item, scratch)) {
        row_clear(s, &s->a->o, item->row0);
        *lse_at(s, item->row0) = -INFINITY_F;
        return;
    }
    matrix_row_products(&w, &s->a->q, w.sign, OPERAND_KEY, -INFINITY_F, w.score);
    float m = max_lanes(scores_max(w.score, w.cols)) * w.softmax_scale;
    vec sum = {0};
    for (u32 c = 0; c < w.cols; c += 2 * LANES) {
        vec low = exp2_half(load(w.score + c) * w.softmax_scale - splat(m));
        vec high = exp2_half(load(w.score + c + LANES) * w.softmax_scale - splat(m));
        pair_store(w.p_ds[0] + c, low, high, w.keep ? w.keep + c / TILE : 0);
        sum += low + high;
    }
    float l = sum_lanes(sum);
    matrix_row_put(&w, &s->a->o, kept_scale(s) / l, w.p_ds[0], OPERAND_VALUE);
    *lse_at(s, w.i) = m * LN_2 + natural_log(splat(l))[0];
}

#if BACKWARD
/* Applies dropout to dP. */
static void matrix_row_drop_dp(const struct matrix_row *w)
{
    const vec kept = splat(w->s->a->keep_scale);
    for (u32 c = 0; w->keep && c < w->cols; c += LANES)
        store(w->dp + c, lanes_kept(load(w->dp + c) * kept, w->keep[c / TILE] >> c % TILE));
}

static void matrix_row_dq(const struct matrix_row *w)
{
    const struct sequence *s = w->s;
    const vec offset = splat(score_offset(*lse_at(s, w->i)));
    vec sum = {0};
    matrix_row_products(w, &s->a->q, w->sign, OPERAND_KEY, -INFINITY_F, w->score);
    matrix_row_products(w, &s->a->d_o, 0, OPERAND_VALUE, 0, w->dp);
    matrix_row_drop_dp(w);
    for (u32 c = 0; c < w->cols; c += LANES) {
        vec p = exp2_half(load(w->score + c) * w->softmax_scale - offset);
        store(w->score + c, p);
        sum += p * load(w->dp + c);
    }
    float delta = *delta_at(s, w->i) = sum_lanes(sum);
    for (u32 c = 0; c < w->cols; c += LANES)
        half_store(w->p_ds[1] + c, load(w->score + c) * (load(w->dp + c) - splat(delta)));
    matrix_row_put(w, &s->a->d_q, s->a->scale, w->p_ds[1], OPERAND_KEY);
}

static void matrix_row_dkv(const struct matrix_row *w)
{
    const struct sequence *s = w->s;
    const float *lse = lse_at(s, w->first), *delta = delta_at(s, w->first);
    matrix_row_products(w, &s->a->k, w->sign, OPERAND_QUERY, -INFINITY_F, w->score);
    matrix_row_products(w, &s->a->v, 0, OPERAND_GRADIENT, 0, w->dp);
    matrix_row_drop_dp(w);
    for (u32 c = w->begin; c < w->end; c++) {
        w->score[c] = w->score[c] * w->softmax_scale - score_offset(lse[c]);
        w->dp[c] -= delta[c];
    }
    for (u32 c = 0; c < w->cols; c += LANES) {
        vec p = exp2_half(load(w->score + c));
        half_store(w->p_ds[0] + c, w->keep ? lanes_kept(p, w->keep[c / TILE] >> c % TILE) : p);
        half_store(w->p_ds[1] + c, p * load(w->dp + c));
    }
    matrix_row_put(w, &s->a->d_k, s->a->scale, w->p_ds[1], OPERAND_QUERY);
    matrix_row_put(w, &s->a->d_v, kept_scale(s), w->p_ds[0], OPERAND_GRADIENT);
}

static void matrix_row_backward(const struct sequence *s, const struct abi_plan *p,
                                const struct abi_item *item, u8 *scratch)
{
    const int transposed = p == &s->a->transposed;
    struct matrix_row w;
    if (item->row0 >= s->rows)
        return;
    if (matrix_row_open(&w, s, p, item, scratch)) {
        (transposed ? matrix_row_dkv : matrix_row_dq)(&w);
        return;
    }
    global_row_empty(s, item->row0, transposed);
}
#endif
#else

INLINE void matrix_row_forward(const struct sequence *s, const struct abi_item *item,
                               u8 *scratch)
{
    (void)s, (void)item, (void)scratch;
}

INLINE void matrix_row_backward(const struct sequence *s, const struct abi_plan *p,
                                const struct abi_item *item, u8 *scratch)
{
    (void)s, (void)p, (void)item, (void)scratch;
}

#endif
#endif
