/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass of an item that is all lines, as masks of few diagonals have them: four rows at
   a time go from scores to output while they are in registers and L1, without the strip's buffers.
   Softmax alone, no dropout; one block of columns. */
#ifndef MASKC_CPU_LINES_FORWARD_H
#define MASKC_CPU_LINES_FORWARD_H

/* Scores of four rows to their weights 2^(s - m); m and l of each. */
INLINE void lines_weigh(line_quads score, u32 lines, quad *m, quad *l)
{
    vec largest = splat(-INFINITY_F), sum = {0};
    for (u32 k = 0; k < lines; k += VEC_QUADS)
        largest = larger(load(score[k]), largest);
    *m = quads_largest(largest);
    vec base = splat_quad((quad)((quad_mask)*m & ~(quad_mask)(*m == -INFINITY_F)));
    for (u32 k = 0; k < lines; k += VEC_QUADS) {
        vec p = exp2_vec(load(score[k]) - base);
        store(score[k], p);
        sum += p;
    }
    *l = quads_sum(sum);
}

/* Rows first .. first + 3 of the strip; `live` has their four bits. */
static void lines_forward_four(const struct lines_item *w, const struct four_lines *line,
                               u32 first, u32 live)
{
    const struct abi_args *a = w->s->a;
    const u32 i = w->item->row0 + first;
    struct four_rows query;
    line_quads score;
    quad m, l;
    const u32 lines = line->count;
    four_read(w->s, &a->q, i, live, &query);
    lines_dots(score, &query, &w->operand[0], line, a->scale * LOG2_E, -INFINITY_F);
    lines_weigh(score, lines, &m, &l);
    *(quad_at *)(w->m->largest + first) = m;
    *(quad_at *)(w->m->total + first) = l;
    four_write(w->s, &a->o, i, live, 1.0f / l, score, &w->operand[1], line);
}

static void lines_forward(const struct sequence *s, const struct abi_item *item, u8 *scratch)
{
    struct lines_item w = lines_open(s, &s->a->forward, item, scratch);
    struct four_lines line;
    for (u32 r = 0; r < STRIP_ROWS; r += LANES)
        store(w.m->total + r, splat(0));
    lines_expect(&w, &s->a->q);
    for (u32 r = 0; r < item->rows; r += FOUR) {
        const u32 live = w.live >> r & ALL_FOUR;
        expect_rows(&w.expected, FOUR);
        if (!live)
            continue;
        lines_at(&w, r, live, &line);
        lines_forward_four(&w, &line, r, live);
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
