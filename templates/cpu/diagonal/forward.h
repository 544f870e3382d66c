/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass of an item that is all lines, as masks of few diagonals have them: rows diagonal_rows go from
   scores to output while they are in registers and L1, without the row block's buffers. Softmax alone, no
   dropout; one block of columns. */
#ifndef MASKC_CPU_LINES_FORWARD_H
#define MASKC_CPU_LINES_FORWARD_H

INLINE vec score_weigh(float *score, vec base)
{
    vec p = exp2_weight(load(score) - base);
    store(score, p);
    return p;
}

/* Scores of rows to their weights 2^(s - m); m and l of each. Two chains, as one would wait for itself. */
INLINE void lines_weigh(float (*score)[DIAGONAL_ROWS], u32 lines, float *m, float *l)
{
    const u32 even = lines & ~1u;
    for (u32 r = 0; r < DIAGONAL_ROWS; r += LANES) {
        vec largest = splat(-INFINITY_F), second = largest, sum = {0}, other = {0};
        for (u32 k = 0; k < even; k += 2) {
            largest = larger(load(score[k] + r), largest);
            second = larger(load(score[k + 1] + r), second);
        }
        if (even < lines)
            second = larger(load(score[even] + r), second);
        largest = larger(second, largest);
        vec base = pick_or_zero((ivec)(largest != splat(-INFINITY_F)), largest);
        for (u32 k = 0; k < even; k += 2) {
            sum += score_weigh(score[k] + r, base);
            other += score_weigh(score[k + 1] + r, base);
        }
        if (even < lines)
            sum += score_weigh(score[even] + r, base);
        store(m + r, largest);
        store(l + r, sum + other);
    }
}

/* m and l to LSE, and to what weights are taken with; both for rows without an active entry too. */
INLINE void lines_finish(const float *m, const float *l, float *lse, float *factor)
{
    for (u32 r = 0; r < DIAGONAL_ROWS; r += LANES) {
        vec sum = load(l + r), one = splat(1);
        ivec some = ~(ivec)(sum <= 0.0f); /* NaN is not nothing */
        vec log = load(m + r) * LN_2 + natural_log(pick(some, sum, one));
        store(lse + r, pick(some, log, splat(-INFINITY_F)));
        store(factor + r, pick_or_zero(some, one / pick(some, sum, one)));
    }
}

/* LSE of rows, and zeros for those that see nothing. */
static void lines_leave(const struct lines_run *w, const struct diagonal_rows *x,
                        const float *lse, const float *factor)
{
    float *to = lse_at(w->s, x->i);
    u32 empty = 0;
    for (u32 r = 0; r < DIAGONAL_ROWS; r++)
        empty |= (u32) !(factor[r] != 0.0f) << r;
    for (u32 r = 0; r < DIAGONAL_ROWS; r += LANES)
        if (x->live == ALL_ABREAST)
            store(to + r, load(lse + r));
    for (u32 r = 0; x->live != ALL_ABREAST && r < DIAGONAL_ROWS; r++)
        if (x->live >> r & 1)
            to[r] = lse[r];
    for (empty &= x->live; empty; empty &= empty - 1)
        row_clear(w->s, &w->s->a->o, x->i + (u32)__builtin_ctz(empty));
}

static void lines_put(struct lines_run *w, const struct diagonal_rows *x, line_numbers score)
{
    float m[DIAGONAL_ROWS], l[DIAGONAL_ROWS], lse[DIAGONAL_ROWS], factor[DIAGONAL_ROWS];
    lines_weigh(score + x->first, x->count, m, l);
    lines_finish(m, l, lse, factor);
    lines_sums(w, x, &w->s->a->o, factor, score, &w->operand[1]);
    lines_leave(w, x, lse, factor);
}

static void lines_forward(const struct sequence *s, const struct abi_item *item, u32 items)
{
    const struct abi_args *a = s->a;
    struct lines_run w;
    line_numbers score;
    lines_open(&w, s, &a->forward, item, items);
    lines_expect(&w, &a->q);
    lines_dots(score, &w, &a->q, &w.operand[0], a->scale * LOG2_E, -INFINITY_F);
    for (u32 b = 0; b < w.blocks; b++)
        lines_put(&w, &w.rows[b], score);
    expect_rows(&w.expected, w.expected.rows);
    for (u32 r = lines_end(&w); r < items * BLOCK_ROWS; r++)
        if (lines_beyond(&w, r)) {
            row_clear(s, &a->o, item->row0 + r);
            *lse_at(s, item->row0 + r) = -INFINITY_F;
        }
}

#endif
