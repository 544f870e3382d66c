/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass of an item that is all lines, rows abreast, as lines/forward.h does forward. All entries
   of a row are at hand at once, so delta, the row's sum of P dP, needs no O; over the transposed plan it
   belongs to columns, as LSE does, and is read. Softmax alone, no dropout; one block of columns. */
#ifndef MASKC_CPU_LINES_BACKWARD_H
#define MASKC_CPU_LINES_BACKWARD_H

/* Takes the numbers of the lines' columns, one for each position of the sequence, from those of the lines.
   Minus infinity, which stands for a row without entries, counts as 0: there is no entry to harm. */
INLINE void lines_subtract(line_numbers x, const struct lines_here *lines, const float *from,
                           float factor)
{
    for (u32 k = 0; k < lines->count; k++) {
        const struct line_at *at = &lines->at[k];
        float some[ABREAST] = {0};
        const float *number = from + at->column;
        if (at->rows != ALL_ABREAST || !at->step) {
            for (u32 r = 0; r < ABREAST; r++)
                if (at->rows >> r & 1)
                    some[r] = from[at->column + at->step * r];
            number = some;
        }
        for (u32 r = 0; r < ABREAST; r += LANES) {
            vec y = load(number + r);
            y = pick_or_zero((ivec)(y != splat(-INFINITY_F)), y * splat(factor));
            store(x[k] + r, load(x[k] + r) - y);
        }
    }
}

/* Scores less the rows' offsets (base 2) to P, slopes to dS; the rows' deltas. */
INLINE void lines_slopes(line_numbers score, line_numbers slope, u32 lines, const float *offset,
                         float *delta)
{
    for (u32 r = 0; r < ABREAST; r += LANES) {
        const vec base = load(offset + r);
        vec sum = {0}, weights = {0};
        for (u32 k = 0; k < lines; k++) {
            vec p = exp2_vec(load(score[k] + r) - base);
            store(score[k] + r, p);
            sum += p * load(slope[k] + r);
            weights += p;
        }
        if (IS_F32) /* delta_of; where there is no weight there is no sum */
            sum /= larger(weights, splat(0x1p-100f));
        store(delta + r, sum);
        for (u32 k = 0; k < lines; k++)
            store(slope[k] + r, load(score[k] + r) * (load(slope[k] + r) - sum));
    }
}

static void lines_dq(const struct lines_item *w, u32 first, u32 live)
{
    const struct sequence *s = w->s;
    const struct abi_args *a = s->a;
    const u32 i = w->item->row0 + first;
    float offset[ABREAST] = {0}, delta[ABREAST], factor[ABREAST];
    struct lines_here lines;
    line_numbers score, slope;
    lines_at(w, first, live, &lines);
    for (u32 r = 0; r < ABREAST; r++)
        if (live >> r & 1)
            offset[r] = score_offset(*lse_at(s, i + r));
    lines_dots(score, s, &a->q, i, live, &w->operand[0], &lines, a->scale * LOG2_E,
               -INFINITY_F);
    lines_dots(slope, s, &a->d_o, i, live, &w->operand[1], &lines, 1, 0);
    lines_slopes(score, slope, lines.count, offset, delta);
    for (u32 r = 0; r < ABREAST; r++) {
        if (live >> r & 1)
            *state_at(s, i + r) = delta[r];
        factor[r] = a->scale;
    }
    lines_sums(s, &a->d_q, i, live, factor, slope, &w->operand[0], &lines);
}

static void lines_dkv(const struct lines_item *w, u32 first, u32 live)
{
    const struct sequence *s = w->s;
    const struct abi_args *a = s->a;
    const u32 i = w->item->row0 + first;
    struct lines_here lines;
    line_numbers score, slope;
    float scale[ABREAST], one[ABREAST];
    lines_at(w, first, live, &lines);
    lines_dots(score, s, &a->k, i, live, &w->operand[0], &lines, a->scale * LOG2_E,
               -INFINITY_F);
    lines_dots(slope, s, &a->v, i, live, &w->operand[1], &lines, 1, 0);
    lines_subtract(score, &lines, lse_at(s, 0), LOG2_E);
    lines_subtract(slope, &lines, state_at(s, 0), 1);
    for (u32 k = 0; k < lines.count; k++)
        for (u32 r = 0; r < ABREAST; r += LANES) {
            vec p = exp2_vec(load(score[k] + r));
            store(score[k] + r, p);
            store(slope[k] + r, p * load(slope[k] + r));
        }
    for (u32 r = 0; r < ABREAST; r++) {
        scale[r] = a->scale;
        one[r] = 1;
    }
    lines_sums(s, &a->d_k, i, live, scale, slope, &w->operand[0], &lines);
    lines_sums(s, &a->d_v, i, live, one, score, &w->operand[1], &lines);
}

static void lines_backward(const struct sequence *s, const struct abi_plan *p,
                           const struct abi_item *item, u8 *scratch)
{
    struct lines_item w = lines_open(s, p, item, scratch);
    const int transposed = p == &s->a->transposed;
    lines_expect(&w, transposed ? &s->a->k : &s->a->q);
    lines_expect(&w, transposed ? &s->a->v : &s->a->d_o);
    for (u32 r = 0; r < item->rows; r += ABREAST)
        if (w.live >> r & ALL_ABREAST) {
            expect_rows(&w.expected, ABREAST);
            (transposed ? lines_dkv : lines_dq)(&w, r, w.live >> r & ALL_ABREAST);
        }
    expect_rows(&w.expected, w.expected.rows);
    for (u32 r = 0; r < item->rows; r++) {
        u32 i = item->row0 + r;
        if (!row_owned(item, r) || i >= s->rows || w.live >> r & 1)
            continue;
        row_clear(s, transposed ? &s->a->d_k : &s->a->d_q, i);
        if (transposed)
            row_clear(s, &s->a->d_v, i);
    }
}

#endif
