/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass of items that are all diagonals, for masks of few diagonals. Softmax without a bias, one block of
   columns, so no rescaling; 16 rows go from scores to output in registers and L1:
     S of all rows of the run                   diagonal_dots
     for each 16 rows
         m, P = 2^(S - m), l                    diagonal_softmax
         O = P V / l, after dropout             diagonal_sums
         LSE                                    diagonal_epilogue */
#ifndef MASKC_CPU_DIAGONAL_FORWARD_H
#define MASKC_CPU_DIAGONAL_FORWARD_H
#include "cpu/diagonal/dropout.h"
#include "cpu/matrix/diagonal.h"

INLINE vec score_exp2(float *score, vec base)
{
    vec p = exp2_p(load(score) - base);
    store(score, p);
    return p;
}

/* Scores to p = 2^(s - m); m and l of each row. Two chains of operations hide their latency. */
INLINE void diagonal_softmax(float (*score)[DIAGONAL_ROWS], u32 diagonals, float *m, float *l)
{
    const u32 even = diagonals & ~1u;
    for (u32 r = 0; r < DIAGONAL_ROWS; r += LANES) {
        vec row_max = splat(-INFINITY_F), second = row_max, sum = {0}, other = {0};
        for (u32 k = 0; k < even; k += 2) {
            row_max = larger(load(score[k] + r), row_max);
            second = larger(load(score[k + 1] + r), second);
        }
        if (even < diagonals)
            second = larger(load(score[even] + r), second);
        row_max = larger(second, row_max);
        vec base = pick_or_zero((ivec)(row_max != splat(-INFINITY_F)), row_max);
        for (u32 k = 0; k < even; k += 2) {
            sum += score_exp2(score[k] + r, base);
            other += score_exp2(score[k + 1] + r, base);
        }
        if (even < diagonals)
            sum += score_exp2(score[even] + r, base);
        store(m + r, row_max);
        store(l + r, sum + other);
    }
}

/* m and l to LSE and to 1 / l, O's scale. Rows without an active entry get -inf and 0. */
INLINE void diagonal_lse(const float *m, const float *l, float *lse, float *scale)
{
    for (u32 r = 0; r < DIAGONAL_ROWS; r += LANES) {
        vec sum = load(l + r), one = splat(1);
        ivec some = ~(ivec)(sum <= 0.0f); /* NaN is not nothing */
        vec log = load(m + r) * LN_2 + natural_log(pick(some, sum, one));
        store(lse + r, pick(some, log, splat(-INFINITY_F)));
        store(scale + r, pick_or_zero(some, one / pick(some, sum, one)));
    }
}

/* Stores the LSE of rows, and clears O of those that see nothing. */
static void diagonal_epilogue(const struct diagonal_run *w, const struct diagonal_rows *x,
                              const float *lse, const float *scale)
{
    float *to = lse_at(w->s, x->i);
    u32 empty = 0;
    for (u32 r = 0; r < DIAGONAL_ROWS; r++)
        empty |= (u32) !(scale[r] != 0.0f) << r;
    for (u32 r = 0; r < DIAGONAL_ROWS; r += LANES)
        if (x->live == ALL_ROWS)
            store(to + r, load(lse + r));
    for (u32 r = 0; x->live != ALL_ROWS && r < DIAGONAL_ROWS; r++)
        if (x->live >> r & 1)
            to[r] = lse[r];
    for (empty &= x->live; empty; empty &= empty - 1)
        row_clear(w->s, &w->s->a->o, x->i + (u32)__builtin_ctz(empty));
}

static void diagonal_rows_forward(struct diagonal_run *w, const struct diagonal_rows *x,
                                  diagonal_numbers score)
{
    float m[DIAGONAL_ROWS], l[DIAGONAL_ROWS], lse[DIAGONAL_ROWS], scale[DIAGONAL_ROWS];
    diagonal_softmax(score + x->first, x->count, m, l);
    diagonal_lse(m, l, lse, scale);
    if (sequence_drops(w->s)) {
        diagonal_bits keep;
        diagonal_keep(keep, w, x, 0);
        diagonal_drop(score + x->first, x->count, keep);
        for (u32 r = 0; r < DIAGONAL_ROWS; r++)
            scale[r] *= w->s->a->keep_scale;
    }
    diagonal_sums(w, x, &w->s->a->o, scale, score, &w->operand[1]);
    diagonal_epilogue(w, x, lse, scale);
}

static void diagonal_forward(const struct sequence *s, const struct abi_item *item, u32 items)
{
    const struct abi_args *a = s->a;
    struct diagonal_run w;
    diagonal_numbers score;
    diagonal_run_open(&w, s, &a->forward, item, items);
    diagonal_run_prefetch(&w, &a->q);
    diagonal_dots(score, &w, &a->q, &w.operand[0], a->scale * LOG2_E, -INFINITY_F);
    for (u32 b = 0; b < w.blocks; b++)
        diagonal_rows_forward(&w, &w.rows[b], score);
    prefetch_rows(&w.prefetch, w.prefetch.rows);
    for (u32 r = diagonal_run_end(&w); r < items * BLOCK_ROWS; r++)
        if (diagonal_run_beyond(&w, r)) {
            row_clear(s, &a->o, item->row0 + r);
            *lse_at(s, item->row0 + r) = -INFINITY_F;
        }
}

#endif
