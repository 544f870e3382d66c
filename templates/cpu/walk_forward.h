/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass of an item that is all walk, as masks of few diagonals have them and the row
   pass does: four rows at a time go from scores to output while they are in registers and L1,
   without the strip's buffers. Softmax alone, no dropout; one block of columns. */
#ifndef MASKC_CPU_WALK_FORWARD_H
#define MASKC_CPU_WALK_FORWARD_H

enum { WALK_ROWS = 4 };

struct walk_item {
    const struct sequence *s;
    const struct abi_item *item;
    const struct abi_line *line; /* null: the columns of one range, for row 0 */
    u32 first, width;
    u32 live; /* as struct strip's */
    struct whole whole;
    struct operand key, value;
    struct block *b; /* score and column of rows 0 .. WALK_ROWS - 1 are used */
    struct strip_memory *m;
};

static int walk_alone(const struct abi_plan *p, const struct abi_item *item)
{
    const struct abi_piece *piece = &p->pieces[item->piece];
    return item->pieces == 1 && item->cols <= CHUNK_COLS &&
           (piece->kind == ABI_DIAGONAL || (piece->kind == ABI_ROWS && piece->count == 1));
}

static void walk_open(struct walk_item *w, const struct sequence *s,
                      const struct abi_item *item, u8 *scratch)
{
    const struct abi_plan *p = &s->a->forward;
    const struct abi_piece *piece = &p->pieces[item->piece];
    w->s = s;
    w->item = item;
    w->line = 0;
    w->first = 0;
    w->width = piece->count;
    w->live = rows_live(s, item);
    w->key = operand_of(s, OPERAND_KEY);
    w->value = operand_of(s, OPERAND_VALUE);
    w->m = (struct strip_memory *)(void *)scratch;
    w->b = (struct block *)(void *)(scratch + STRIP_BYTES);
    if (piece->kind == ABI_DIAGONAL) {
        w->line = p->lines + piece->first;
        w->whole = lines_whole(w->line, w->width, s->length, item->rows);
    } else {
        struct abi_range range = p->ranges[piece->first];
        u32 end = range.end < s->length ? range.end : s->length;
        w->first = range.begin;
        w->width = range.begin < end ? end - range.begin : 0;
    }
}

/* The columns of row r into list x; returns how many. */
INLINE u32 walk_row_columns(const struct walk_item *w, u32 r, u32 *to)
{
    const u32 width = w->width, length = w->s->length;
    const struct abi_line *line = w->line;
    if (!line) {
        for (u32 k = 0; k < width; k++)
            to[k] = w->first + k;
        return width;
    }
    if (r >= w->whole.first && r < w->whole.end) {
        for (u32 k = 0; k < width; k++)
            to[k] = (u32)line[k].col0 + line[k].step * r;
        return width;
    }
    u32 count = 0;
    for (u32 k = 0; k < width; k++, line++) {
        u32 column = (u32)line->col0 + line->step * r;
        to[count] = column;
        count += (r >= line->row_begin) & (r < line->row_end) & (column < length);
    }
    return count;
}

/* The row's query, where it lies if it is floats, else as floats in `buffer`. */
INLINE const float *query_row(const struct walk_item *w, u32 i, float *buffer)
{
    const struct abi_tensor *q = &w->s->a->q;
    if (!ROWS_PACKED)
        return (const float *)q->data + element_at(w->s, q, i);
    row_read(w->s, q, i, 1, buffer);
    return buffer;
}

/* Scores in base 2, -inf up to whole vectors, which are stored as they will be read; returns their
   largest, lane by lane. */
INLINE vec walk_row_scores(const float *query, struct operand o, u32 *column, u32 count,
                           float factor, float *to)
{
    enum { QUADS = LANES / 4 };
    const vec nothing = splat(-INFINITY_F);
    vec largest = nothing;
    column[count] = column[count + 1] = column[count + 2] = column[0];
    for (u32 c = 0; c < count; c += LANES) {
        quad q[QUADS] = {{0}};
        for (u32 k = 0; k < QUADS; k++)
            if (c + 4 * k < count) {
                const u32 *at = column + c + 4 * k;
                q[k] = dots4(query, operand_row(&o, at[0]), operand_row(&o, at[1]),
                             operand_row(&o, at[2]), operand_row(&o, at[3]));
            }
        vec s = pick(mask_of_count(count - c), join_quads(q) * splat(factor), nothing);
        store(to + c, s);
        largest = larger(s, largest);
    }
    return largest;
}

/* Scores to 2^(s - m); returns their sum, lane by lane. */
INLINE vec walk_row_exp2(float *score, u32 count, float m)
{
    vec sum = {0};
    for (u32 c = 0; c < count; c += LANES) {
        vec p = exp2_vec(load(score + c) - splat(m));
        store(score + c, p);
        sum += p;
    }
    return sum;
}

INLINE void walk_row_output(const struct walk_item *w, u32 i, const float *weight,
                            const u32 *column, u32 count, float factor)
{
    const struct abi_tensor *o = &w->s->a->o;
    float buffer[WIDTH];
    float *to = ROWS_PACKED ? buffer : (float *)o->data + element_at(w->s, o, i);
    const struct operand value = w->value;
    walk_product(to, 0, factor, weight, &value, column, count);
    if (ROWS_PACKED)
        row_write(w->s, o, i, 1, buffer);
}

/* Rows first .. first + 3 of the strip; `live` has their four bits. */
static void walk_four(const struct walk_item *w, u32 first, u32 live)
{
    const float factor = w->s->a->scale * LOG2_E;
    u32 count[WALK_ROWS], i = w->item->row0 + first;
    vec x[WALK_ROWS], sum[WALK_ROWS];
    float buffer[WIDTH];
    for (u32 k = 0; k < WALK_ROWS; k++) {
        float *score = w->b->score[k];
        count[k] = live >> k & 1 ? walk_row_columns(w, first + k, w->b->column[k]) : 0;
        x[k] = splat(-INFINITY_F);
        if (count[k])
            x[k] = walk_row_scores(query_row(w, i + k, buffer), w->key, w->b->column[k],
                                   count[k], factor, score);
    }
    quad m = largest4(x[0], x[1], x[2], x[3]);
    quad base = (quad)((quad_mask)m & ~(quad_mask)(m == -INFINITY_F));
    for (u32 k = 0; k < WALK_ROWS; k++)
        sum[k] = walk_row_exp2(w->b->score[k], count[k], base[k]);
    quad l = sum4(sum[0], sum[1], sum[2], sum[3]);
    *(quad_at *)(w->m->largest + first) = m;
    *(quad_at *)(w->m->total + first) = l;
    quad inverse = 1.0f / l;
    for (u32 k = 0; k < WALK_ROWS; k++)
        if (count[k])
            walk_row_output(w, i + k, w->b->score[k], w->b->column[k], count[k], inverse[k]);
}

static void walk_forward(const struct sequence *s, const struct abi_item *item, u8 *scratch)
{
    struct walk_item w;
    walk_open(&w, s, item, scratch);
    for (u32 r = 0; r < STRIP_ROWS; r += LANES)
        store(w.m->total + r, splat(0));
    for (u32 r = 0; r < item->rows; r += WALK_ROWS)
        if (w.live >> r & 15)
            walk_four(&w, r, w.live >> r & 15);
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
