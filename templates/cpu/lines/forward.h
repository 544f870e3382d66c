/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass of an item that is all lines, as masks of few diagonals have them: rows abreast go from
   scores to output while they are in registers and L1, without the strip's buffers. Softmax alone, no
   dropout; one block of columns. */
#ifndef MASKC_CPU_LINES_FORWARD_H
#define MASKC_CPU_LINES_FORWARD_H

/* Scores of rows to their weights 2^(s - m); m and l of each. */
INLINE void lines_weigh(line_numbers score, u32 lines, float *m, float *l)
{
    for (u32 r = 0; r < ABREAST; r += LANES) {
        vec largest = splat(-INFINITY_F), sum = {0};
        for (u32 k = 0; k < lines; k++)
            largest = larger(load(score[k] + r), largest);
        vec base = pick_or_zero((ivec)(largest != splat(-INFINITY_F)), largest);
        for (u32 k = 0; k < lines; k++) {
            vec p = exp2_vec(load(score[k] + r) - base);
            store(score[k] + r, p);
            sum += p;
        }
        store(m + r, largest);
        store(l + r, sum);
    }
}

/* The rows of the strip from `first` on; `live` has their bits. */
static void lines_forward_abreast(const struct lines_item *w, u32 first, u32 live)
{
    const struct abi_args *a = w->s->a;
    const u32 i = w->item->row0 + first;
    float *l = w->m->total + first, factor[ABREAST];
    struct lines_here lines;
    line_numbers score;
    lines_at(w, first, live, &lines);
    lines_dots(score, w->s, &a->q, i, live, &w->operand[0], &lines, a->scale * LOG2_E,
               -INFINITY_F);
    lines_weigh(score, lines.count, w->m->largest + first, l);
    for (u32 r = 0; r < ABREAST; r++)
        factor[r] = 1.0f / l[r];
    lines_sums(w->s, &a->o, i, live, factor, score, &w->operand[1], &lines);
}

static void lines_forward(const struct sequence *s, const struct abi_item *item, u8 *scratch)
{
    struct lines_item w = lines_open(s, &s->a->forward, item, scratch);
    for (u32 r = 0; r < STRIP_ROWS; r += LANES)
        store(w.m->total + r, splat(0));
    lines_expect(&w, &s->a->q);
    for (u32 r = 0; r < item->rows; r += ABREAST)
        if (w.live >> r & ALL_ABREAST) {
            expect_rows(&w.expected, ABREAST / 2);
            lines_forward_abreast(&w, r, w.live >> r & ALL_ABREAST);
        }
    expect_rows(&w.expected, w.expected.rows);
    softmax_finish(w.m);
    for (u32 r = 0; r < item->rows; r++) {
        u32 i = item->row0 + r;
        if (!row_owned(item, r) || i >= s->rows)
            continue;
        *lse_at(s, i) = w.m->offset[r];
        if (!(w.m->total[r] != 0.0f))
            row_clear(s, &s->a->o, i);
    }
}

#endif
