/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass of an item that is all lines, four rows at a time, as lines_forward.h does
   forward. All entries of a row are at hand at once, so delta, the row's sum of P dP, needs no O;
   over the transposed plan it belongs to columns, as LSE does, and is read. Softmax alone, no
   dropout; one block of columns. */
#ifndef MASKC_CPU_LINES_BACKWARD_H
#define MASKC_CPU_LINES_BACKWARD_H

/* The numbers of a line's four columns, from one for each position of the sequence. */
INLINE quad line_numbers(const float *from, const struct line_at *x, u32 first)
{
    const i64 column = x->column + x->step * first;
    if (x->rows == ALL_FOUR && x->step)
        return *(const quad_at *)(from + column);
    quad ret = {0};
    for (u32 k = 0; k < FOUR; k++)
        if (x->rows >> k & 1)
            ret[k] = from[column + x->step * k];
    return ret;
}

/* Minus infinity, which stands for a row without entries, to 0: there is no entry to harm. */
INLINE quad quad_offset(quad lse)
{
    return (quad)((quad_mask)(lse * LOG2_E) & ~(quad_mask)(lse == -INFINITY_F));
}

/* Scores (base 2) to P, slopes to dS; returns the rows' deltas. */
INLINE quad lines_slopes(line_quads score, line_quads slope, u32 lines, quad lse)
{
    const vec offset = splat_quad(quad_offset(lse));
    vec sum = {0};
    for (u32 k = 0; k < lines; k += VEC_QUADS) {
        vec p = exp2_vec(load(score[k]) - offset);
        store(score[k], p);
        sum += p * load(slope[k]);
    }
    quad delta = quads_sum(sum);
    for (u32 k = 0; k < lines; k += VEC_QUADS)
        store(slope[k], load(score[k]) * (load(slope[k]) - splat_quad(delta)));
    return delta;
}

static void lines_dq_four(const struct lines_item *w, const struct four_lines *line, u32 first,
                          u32 live)
{
    const struct sequence *s = w->s;
    const u32 i = w->item->row0 + first;
    struct four_rows rows;
    line_quads score, slope;
    const u32 lines = line->count;
    quad lse = {0};
    for (u32 r = 0; r < FOUR; r++)
        if (live >> r & 1)
            lse[r] = *lse_at(s, i + r);
    four_read(s, &s->a->q, i, live, &rows);
    lines_dots(score, &rows, &w->operand[0], line, s->a->scale * LOG2_E, -INFINITY_F);
    four_read(s, &s->a->d_o, i, live, &rows);
    lines_dots(slope, &rows, &w->operand[1], line, 1, 0);
    quad delta = lines_slopes(score, slope, lines, lse);
    for (u32 r = 0; r < FOUR; r++)
        if (live >> r & 1)
            *state_at(s, i + r) = delta[r];
    quad factor = {s->a->scale, s->a->scale, s->a->scale, s->a->scale};
    four_write(s, &s->a->d_q, i, live, factor, slope, &w->operand[0], line);
}

static void lines_dkv_four(const struct lines_item *w, const struct four_lines *line, u32 first,
                           u32 live)
{
    const struct sequence *s = w->s;
    const u32 i = w->item->row0 + first;
    const float *lse = lse_at(s, 0), *delta = state_at(s, 0);
    struct four_rows rows;
    line_quads score, slope;
    const u32 lines = line->count;
    four_read(s, &s->a->k, i, live, &rows);
    lines_dots(score, &rows, &w->operand[0], line, s->a->scale * LOG2_E, -INFINITY_F);
    four_read(s, &s->a->v, i, live, &rows);
    lines_dots(slope, &rows, &w->operand[1], line, 1, 0);
    for (u32 k = 0; k < lines; k++) {
        *(quad_at *)score[k] -= quad_offset(line_numbers(lse, &line->at[k], line->first));
        *(quad_at *)slope[k] -= line_numbers(delta, &line->at[k], line->first);
    }
    for (u32 k = 0; k < lines; k += VEC_QUADS) {
        vec p = exp2_vec(load(score[k]));
        store(score[k], p);
        store(slope[k], p * load(slope[k]));
    }
    quad one = {1, 1, 1, 1};
    four_write(s, &s->a->d_k, i, live, one * s->a->scale, slope, &w->operand[0], line);
    four_write(s, &s->a->d_v, i, live, one, score, &w->operand[1], line);
}

static void lines_backward(const struct sequence *s, const struct abi_plan *p,
                           const struct abi_item *item, u8 *scratch)
{
    struct lines_item w = lines_open(s, p, item, scratch);
    const int transposed = p == &s->a->transposed;
    struct four_lines line;
    lines_expect(&w, transposed ? &s->a->k : &s->a->q);
    lines_expect(&w, transposed ? &s->a->v : &s->a->d_o);
    for (u32 r = 0; r < item->rows; r += FOUR) {
        const u32 live = w.live >> r & ALL_FOUR;
        expect_rows(&w.expected, 2 * FOUR);
        if (!live)
            continue;
        lines_at(&w, r, live, &line);
        (transposed ? lines_dkv_four : lines_dq_four)(&w, &line, r, live);
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
