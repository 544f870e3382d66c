/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass of items that are all diagonals; see diagonal/forward.h.
     S, dP of all rows of the run                               diagonal_dots
     for each 16 rows
         P = 2^(S - LSE), delta = rowsum(P dP), dS = P (dP - delta)       diagonal_ds
         dQ = dS K                                              diagonal_sums
   All entries of a row are there at once, so delta needs no O. In the transposed plan LSE and delta belong to columns
   and are read (diagonal_subtract); then dK = dS^T Q, dV = P^T dO. */
#ifndef MASKC_CPU_DIAGONAL_BACKWARD_H
#define MASKC_CPU_DIAGONAL_BACKWARD_H
#include "cpu/diagonal/dropout.h"
#include "cpu/matrix/diagonal.h"

/* x -= scale * number of the column, where `from` has a number for each position of the sequence. -inf, the LSE of a
   row without entries, counts as 0. */
INLINE void diagonal_subtract(float (*x)[DIAGONAL_ROWS], const struct diagonal_at *diagonal,
                              u32 diagonals, const float *from, float scale)
{
    for (u32 k = 0; k < diagonals; k++) {
        const struct diagonal_at *at = &diagonal[k];
        float some[DIAGONAL_ROWS] = {0};
        const float *number = from + at->column;
        if (at->rows != ALL_ROWS || !at->step) {
            for (u32 r = 0; r < DIAGONAL_ROWS; r++)
                if (at->rows >> r & 1)
                    some[r] = from[at->column + at->step * r];
            number = some;
        }
        for (u32 r = 0; r < DIAGONAL_ROWS; r += LANES) {
            vec y = load(number + r);
            y = pick_or_zero((ivec)(y != splat(-INFINITY_F)), y * splat(scale));
            store(x[k] + r, load(x[k] + r) - y);
        }
    }
}

/* Sums of rows over their diagonals, in two chains that hide the latency of additions. */
struct delta_sums {
    vec dp[2], p_sum[2];
};

/* A score less the row's offset (base 2) to P; its part of the sums of P dP and of P. */
INLINE void p_dp_add(float *score, const float *dp, vec base, struct delta_sums *x, u32 chain)
{
    vec p = exp2_p(load(score) - base);
    store(score, p);
    x->dp[chain] += p * load(dp);
    x->p_sum[chain] += p;
}

/* S to P, dP to dS; delta of each row. */
INLINE void diagonal_ds(float (*score)[DIAGONAL_ROWS], float (*dp)[DIAGONAL_ROWS],
                        u32 diagonals, const float *offset, float *delta)
{
    const u32 even = diagonals & ~1u;
    for (u32 r = 0; r < DIAGONAL_ROWS; r += LANES) {
        const vec base = load(offset + r);
        struct delta_sums x = {{{0}}, {{0}}};
        for (u32 k = 0; k < even; k += 2) {
            p_dp_add(score[k] + r, dp[k] + r, base, &x, 0);
            p_dp_add(score[k + 1] + r, dp[k + 1] + r, base, &x, 1);
        }
        if (even < diagonals)
            p_dp_add(score[even] + r, dp[even] + r, base, &x, 0);
        vec sum = x.dp[0] + x.dp[1];
        if (IS_F32) /* delta_of(); the limit keeps rows without entries at 0 */
            sum /= larger(x.p_sum[0] + x.p_sum[1], splat(0x1p-100f));
        store(delta + r, sum);
        for (u32 k = 0; k < diagonals; k++)
            store(dp[k] + r, load(score[k] + r) * (load(dp[k] + r) - sum));
    }
}

static void diagonal_rows_dq(struct diagonal_run *w, const struct diagonal_rows *x,
                             diagonal_numbers score, diagonal_numbers dp)
{
    const struct sequence *s = w->s;
    float offset[DIAGONAL_ROWS] = {0}, delta[DIAGONAL_ROWS], scale[DIAGONAL_ROWS];
    for (u32 r = 0; r < DIAGONAL_ROWS; r++) {
        if (x->live >> r & 1)
            offset[r] = score_offset(*lse_at(s, x->i + r));
        scale[r] = s->a->scale;
    }
    if (sequence_drops(s)) {
        diagonal_bits keep;
        diagonal_keep(keep, w, x, 0);
        diagonal_drop(dp + x->first, x->count, keep);
    }
    diagonal_ds(score + x->first, dp + x->first, x->count, offset, delta);
    for (u32 r = 0; r < DIAGONAL_ROWS; r++)
        if (x->live >> r & 1)
            *delta_at(s, x->i + r) = delta[r];
    diagonal_sums(w, x, &s->a->d_q, scale, dp, &w->operand[0]);
}

static void diagonal_dq(struct diagonal_run *w)
{
    const struct abi_args *a = w->s->a;
    diagonal_numbers score, dp;
    diagonal_run_prefetch(w, &a->q);
    diagonal_run_prefetch(w, &a->d_o);
    diagonal_dots(score, w, &a->q, &w->operand[0], a->scale * LOG2_E, -INFINITY_F);
    diagonal_dots(dp, w, &a->d_o, &w->operand[1], kept_scale(w->s), 0);
    for (u32 b = 0; b < w->blocks; b++)
        diagonal_rows_dq(w, &w->rows[b], score, dp);
}

static void diagonal_rows_dkv(struct diagonal_run *w, const struct diagonal_rows *x,
                              diagonal_numbers score, diagonal_numbers dp)
{
    const struct sequence *s = w->s;
    const struct diagonal_at *diagonal = w->diagonal + x->first;
    float(*p)[DIAGONAL_ROWS] = score + x->first, (*ds)[DIAGONAL_ROWS] = dp + x->first;
    float scale[DIAGONAL_ROWS], kept[DIAGONAL_ROWS];
    diagonal_bits keep;
    if (sequence_drops(s)) {
        diagonal_keep(keep, w, x, 1);
        diagonal_drop(ds, x->count, keep);
    }
    diagonal_subtract(p, diagonal, x->count, lse_at(s, 0), LOG2_E);
    diagonal_subtract(ds, diagonal, x->count, delta_at(s, 0), 1);
    for (u32 k = 0; k < x->count; k++)
        for (u32 r = 0; r < DIAGONAL_ROWS; r += LANES) {
            vec y = exp2_p(load(p[k] + r));
            store(p[k] + r, y);
            store(ds[k] + r, y * load(ds[k] + r));
        }
    if (sequence_drops(s))
        diagonal_drop(p, x->count, keep);
    for (u32 r = 0; r < DIAGONAL_ROWS; r++) {
        scale[r] = s->a->scale;
        kept[r] = kept_scale(s);
    }
    diagonal_sums(w, x, &s->a->d_k, scale, dp, &w->operand[0]);
    diagonal_sums(w, x, &s->a->d_v, kept, score, &w->operand[1]);
}

static void diagonal_dkv(struct diagonal_run *w)
{
    const struct abi_args *a = w->s->a;
    diagonal_numbers score, dp;
    diagonal_run_prefetch(w, &a->k);
    diagonal_run_prefetch(w, &a->v);
    diagonal_dots(score, w, &a->k, &w->operand[0], a->scale * LOG2_E, -INFINITY_F);
    diagonal_dots(dp, w, &a->v, &w->operand[1], kept_scale(w->s), 0);
    for (u32 b = 0; b < w->blocks; b++)
        diagonal_rows_dkv(w, &w->rows[b], score, dp);
}

static void diagonal_backward(const struct sequence *s, const struct abi_plan *p,
                              const struct abi_item *item, u32 items)
{
    const int transposed = p == &s->a->transposed;
    struct diagonal_run w;
    diagonal_run_open(&w, s, p, item, items);
    (transposed ? diagonal_dkv : diagonal_dq)(&w);
    prefetch_rows(&w.prefetch, w.prefetch.rows);
    for (u32 r = diagonal_run_end(&w); r < items * BLOCK_ROWS; r++) {
        if (!diagonal_run_beyond(&w, r))
            continue;
        row_clear(s, transposed ? &s->a->d_k : &s->a->d_q, item->row0 + r);
        if (transposed)
            row_clear(s, &s->a->d_v, item->row0 + r);
    }
}

#endif
