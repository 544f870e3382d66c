/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass of an item that is all lines, rows diagonal_rows, as lines/forward.h does forward. All entries
   of a row are at hand at once, so delta, the row's sum of P dP, needs no O; over the transposed plan it
   belongs to columns, as LSE does, and is read. Softmax alone, no dropout; one block of columns. */
#ifndef MASKC_CPU_LINES_BACKWARD_H
#define MASKC_CPU_LINES_BACKWARD_H

/* Takes the numbers of the lines' columns, one for each position of the sequence, from those of the lines.
   Minus infinity, which stands for a row without entries, counts as 0: there is no entry to harm. */
INLINE void lines_subtract(float (*x)[DIAGONAL_ROWS], const struct line_at *line, u32 lines,
                           const float *from, float factor)
{
    for (u32 k = 0; k < lines; k++) {
        const struct line_at *at = &line[k];
        float some[DIAGONAL_ROWS] = {0};
        const float *number = from + at->column;
        if (at->rows != ALL_ABREAST || !at->step) {
            for (u32 r = 0; r < DIAGONAL_ROWS; r++)
                if (at->rows >> r & 1)
                    some[r] = from[at->column + at->step * r];
            number = some;
        }
        for (u32 r = 0; r < DIAGONAL_ROWS; r += LANES) {
            vec y = load(number + r);
            y = pick_or_zero((ivec)(y != splat(-INFINITY_F)), y * splat(factor));
            store(x[k] + r, load(x[k] + r) - y);
        }
    }
}

/* Sums of rows over their lines; two chains, as one would wait for itself. */
struct slope_sums {
    vec slope[2], weight[2];
};

/* A score less the row's offset (base 2) to P; its part of the sums of P dP and of P. */
INLINE void slope_weigh(float *score, const float *slope, vec base, struct slope_sums *x,
                        u32 chain)
{
    vec p = exp2_weight(load(score) - base);
    store(score, p);
    x->slope[chain] += p * load(slope);
    x->weight[chain] += p;
}

/* Scores to P, slopes to dS; the rows' deltas. */
INLINE void lines_slopes(float (*score)[DIAGONAL_ROWS], float (*slope)[DIAGONAL_ROWS],
                         u32 lines, const float *offset, float *delta)
{
    const u32 even = lines & ~1u;
    for (u32 r = 0; r < DIAGONAL_ROWS; r += LANES) {
        const vec base = load(offset + r);
        struct slope_sums x = {{{0}}, {{0}}};
        for (u32 k = 0; k < even; k += 2) {
            slope_weigh(score[k] + r, slope[k] + r, base, &x, 0);
            slope_weigh(score[k + 1] + r, slope[k + 1] + r, base, &x, 1);
        }
        if (even < lines)
            slope_weigh(score[even] + r, slope[even] + r, base, &x, 0);
        vec sum = x.slope[0] + x.slope[1];
        if (IS_F32) /* delta_of; where there is no weight there is no sum */
            sum /= larger(x.weight[0] + x.weight[1], splat(0x1p-100f));
        store(delta + r, sum);
        for (u32 k = 0; k < lines; k++)
            store(slope[k] + r, load(score[k] + r) * (load(slope[k] + r) - sum));
    }
}

static void lines_put_dq(struct lines_run *w, const struct diagonal_rows *x, line_numbers score,
                         line_numbers slope)
{
    const struct sequence *s = w->s;
    float offset[DIAGONAL_ROWS] = {0}, delta[DIAGONAL_ROWS], factor[DIAGONAL_ROWS];
    for (u32 r = 0; r < DIAGONAL_ROWS; r++) {
        if (x->live >> r & 1)
            offset[r] = score_offset(*lse_at(s, x->i + r));
        factor[r] = s->a->scale;
    }
    lines_slopes(score + x->first, slope + x->first, x->count, offset, delta);
    for (u32 r = 0; r < DIAGONAL_ROWS; r++)
        if (x->live >> r & 1)
            *state_at(s, x->i + r) = delta[r];
    lines_sums(w, x, &s->a->d_q, factor, slope, &w->operand[0]);
}

static void lines_dq(struct lines_run *w)
{
    const struct abi_args *a = w->s->a;
    line_numbers score, slope;
    lines_expect(w, &a->q);
    lines_expect(w, &a->d_o);
    lines_dots(score, w, &a->q, &w->operand[0], a->scale * LOG2_E, -INFINITY_F);
    lines_dots(slope, w, &a->d_o, &w->operand[1], 1, 0);
    for (u32 b = 0; b < w->blocks; b++)
        lines_put_dq(w, &w->rows[b], score, slope);
}

static void lines_put_dkv(struct lines_run *w, const struct diagonal_rows *x,
                          line_numbers score, line_numbers slope)
{
    const struct sequence *s = w->s;
    const struct line_at *line = w->line + x->first;
    float(*p)[DIAGONAL_ROWS] = score + x->first, (*ds)[DIAGONAL_ROWS] = slope + x->first;
    float scale[DIAGONAL_ROWS], one[DIAGONAL_ROWS];
    lines_subtract(p, line, x->count, lse_at(s, 0), LOG2_E);
    lines_subtract(ds, line, x->count, state_at(s, 0), 1);
    for (u32 k = 0; k < x->count; k++)
        for (u32 r = 0; r < DIAGONAL_ROWS; r += LANES) {
            vec y = exp2_weight(load(p[k] + r));
            store(p[k] + r, y);
            store(ds[k] + r, y * load(ds[k] + r));
        }
    for (u32 r = 0; r < DIAGONAL_ROWS; r++) {
        scale[r] = s->a->scale;
        one[r] = 1;
    }
    lines_sums(w, x, &s->a->d_k, scale, slope, &w->operand[0]);
    lines_sums(w, x, &s->a->d_v, one, score, &w->operand[1]);
}

static void lines_dkv(struct lines_run *w)
{
    const struct abi_args *a = w->s->a;
    line_numbers score, slope;
    lines_expect(w, &a->k);
    lines_expect(w, &a->v);
    lines_dots(score, w, &a->k, &w->operand[0], a->scale * LOG2_E, -INFINITY_F);
    lines_dots(slope, w, &a->v, &w->operand[1], 1, 0);
    for (u32 b = 0; b < w->blocks; b++)
        lines_put_dkv(w, &w->rows[b], score, slope);
}

static void lines_backward(const struct sequence *s, const struct abi_plan *p,
                           const struct abi_item *item, u32 items)
{
    const int transposed = p == &s->a->transposed;
    struct lines_run w;
    lines_open(&w, s, p, item, items);
    (transposed ? lines_dkv : lines_dq)(&w);
    expect_rows(&w.expected, w.expected.rows);
    for (u32 r = lines_end(&w); r < items * BLOCK_ROWS; r++) {
        if (!lines_beyond(&w, r))
            continue;
        row_clear(s, transposed ? &s->a->d_k : &s->a->d_q, item->row0 + r);
        if (transposed)
            row_clear(s, &s->a->d_v, item->row0 + r);
    }
}

#endif
