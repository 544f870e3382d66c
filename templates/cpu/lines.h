/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, four rows of a strip at a time. Each line gives each of the four at most one column. Their
   scores are kept line by line, the four rows side by side in a quad: what goes along a row goes
   from vector to vector then, and almost nothing across lanes; and what the rows share (where a
   line begins, whether it covers them) is found out once for the four. */
#ifndef MASKC_CPU_LINES_H
#define MASKC_CPU_LINES_H

enum {
    FOUR = 4,
    ALL_FOUR = 15,
    ROW_VECS = WIDTH / LANES,
    SUM_VECS = VECTOR_BYTES == 64 ? 4 : 2, /* FOUR x SUM_VECS sums stay in registers */
    ROW_SUM_VECS = 4,                      /* of one row */
    VEC_QUADS = LANES / FOUR,
    LINES_ROOM = CHUNK_COLS + VEC_QUADS
};

/* A line at four rows: row k of them, if bit k of `rows` is set, sees column + step k. */
struct line_at {
    i64 column, step;
    u32 rows;
};

struct four_rows {
    vec at[FOUR][ROW_VECS];
};

typedef float line_quads[LINES_ROOM][FOUR];

/* The lines that four rows see. */
struct four_lines {
    struct line_at at[LINES_ROOM];
    u32 count;
    u32 first; /* of them, counted from the row that `column` is of */
};

struct lines_item {
    const struct sequence *s;
    const struct abi_item *item;
    const struct abi_line *line;
    u32 lines;
    struct whole whole;
    u32 live;                  /* as struct strip's */
    struct operand operand[2]; /* columns: for S, for dP (forward: for O) */
    struct strip_memory *m;
    struct expected expected;
};

/* Lines and rows alone go ways of their own only there. */
INLINE int plain_softmax(const struct sequence *s)
{
    return IS_SOFTMAX && !SOFT && !(DROPOUT && s->a->keep_below);
}

/* Whether lines cover most of the rows that are taken with theirs: four at a time costs as much for
   one row as for four, which scattered entries do not pay for. */
static int lines_whole_enough(const struct abi_line *line, u32 lines)
{
    u32 rows = 0, fours = 0;
    for (u32 k = 0; k < lines; k++, line++) {
        rows += line->row_end - line->row_begin;
        fours += (line->row_end + FOUR - 1) / FOUR - line->row_begin / FOUR;
    }
    return 2 * rows >= FOUR * fours;
}

/* Lines alone, in one block. */
static int lines_alone(const struct abi_plan *p, const struct abi_item *item)
{
    const struct abi_piece *piece = &p->pieces[item->piece];
    return item->pieces == 1 && piece->kind == ABI_DIAGONAL && item->cols <= CHUNK_COLS &&
           !item->resume[0] && !item->partial &&
           lines_whole_enough(p->lines + piece->first, piece->count);
}

static struct lines_item lines_open(const struct sequence *s, const struct abi_plan *p,
                                    const struct abi_item *item, u8 *scratch)
{
    const int transposed = p == &s->a->transposed;
    const struct abi_piece *piece = &p->pieces[item->piece];
    struct lines_item w = {.s = s, .item = item, .lines = piece->count};
    w.line = p->lines + piece->first;
    w.whole = lines_whole(w.line, w.lines, s->length, item->rows);
    w.live = rows_live(s, item);
    w.operand[0] = operand_of(s, transposed ? OPERAND_QUERY : OPERAND_KEY);
    w.operand[1] = operand_of(s, transposed ? OPERAND_GRADIENT : OPERAND_VALUE);
    w.m = (struct strip_memory *)(void *)scratch;
    return w;
}

/* The rows of the next strip will be wanted. */
static void lines_expect(struct lines_item *w, const struct abi_tensor *t)
{
    expect_add(&w->expected, w->s, t, w->item->row0 + STRIP_ROWS, 1, STRIP_ROWS);
}

static const float no_row[WIDTH]; /* zeros, in any format */

/* Those lines that the rows first .. first + 3 see, of whom `live` has the bits. Where all rows of the item
   see all lines the list is made once, for its first four. */
static void lines_at(const struct lines_item *w, u32 first, u32 live, struct four_lines *to)
{
    const struct abi_line *line = w->line;
    const u32 rows = w->item->rows;
    to->first = 0;
    if (w->live == 0xffffffff >> (32 - rows) && !w->whole.first && w->whole.end == rows &&
        rows % FOUR == 0) {
        to->first = first;
        for (u32 k = 0; first == 0 && k < w->lines; k++)
            to->at[k] = (struct line_at){line[k].col0, line[k].step, ALL_FOUR};
        to->count = w->lines;
        return;
    }
    to->count = 0;
    for (u32 k = 0; k < w->lines; k++, line++) {
        i64 column = (i64)line->col0 + (i64)line->step * first;
        i64 begin = (i64)line->row_begin - first, end = (i64)line->row_end - first;
        i64 left = w->s->length - column;
        if (line->step || left <= 0)
            end = left < end ? left : end;
        begin = begin < 0 ? 0 : begin;
        end = end < FOUR ? end : FOUR;
        u32 bits = begin < end ? (1u << end) - (1u << begin) : 0;
        to->at[to->count] = (struct line_at){column, line->step, bits & live};
        to->count += to->at[to->count].rows != 0;
    }
}

/* The columns' rows of an operand; zeros for those of the four that the line does not cover. */
INLINE void line_rows(const struct operand *o, const struct line_at *x, u32 first,
                      const float *row[FOUR])
{
    const float *from = o->rows + (x->column + x->step * first) * o->stride;
    i64 by = x->step ? o->stride : 0;
    for (u32 k = 0; k < FOUR; k++)
        row[k] = from + k * by;
    if (x->rows != ALL_FOUR)
        for (u32 k = 0; k < FOUR; k++)
            row[k] = x->rows >> k & 1 ? row[k] : no_row;
}

/* The row's elements where they lie if they are floats, else as floats in `buffer`, split. */
INLINE const float *row_floats(const struct sequence *s, const struct abi_tensor *t, u32 i,
                               float *buffer)
{
    if (!ROWS_PACKED)
        return (const float *)t->data + element_at(s, t, i);
    row_read(s, t, i, 1, buffer);
    row_split(buffer);
    return buffer;
}

/* Rows i .. i + 3; zeros for those that are not live. */
INLINE void four_read(const struct sequence *s, const struct abi_tensor *t, u32 i, u32 live,
                      struct four_rows *to)
{
    float buffer[FOUR][WIDTH];
    for (u32 r = 0; r < FOUR; r++) {
        const float *row = live >> r & 1 ? row_floats(s, t, i + r, buffer[r]) : no_row;
        for (u32 v = 0; v < ROW_VECS; v++)
            to->at[r][v] = load(row + v * LANES);
    }
}

/* Sums over columns of factor[row] x weight x the column's row, `vecs` vectors from feature d. */
INLINE void lines_sum(float *const to[FOUR], u32 d, u32 vecs, quad factor,
                      const line_quads weight, const struct operand *o,
                      const struct four_lines *line)
{
    vec sum[FOUR][SUM_VECS] = {{{0}}};
    for (u32 k = 0; k < line->count; k++) {
        const float *row[FOUR];
        line_rows(o, &line->at[k], line->first, row);
        for (u32 r = 0; r < FOUR; r++) {
            vec w = splat(weight[k][r]);
            for (u32 v = 0; v < vecs; v++)
                sum[r][v] += w * row_load(row[r], d + v * LANES);
        }
    }
    for (u32 r = 0; r < FOUR; r++) {
        for (u32 v = 0; v + 2 <= vecs; v += 2)
            vecs_join(&sum[r][v]);
        for (u32 v = 0; v < vecs; v++)
            store(to[r] + d + v * LANES, sum[r][v] * splat(factor[r]));
    }
}

static void lines_sums(float *const to[FOUR], quad factor, const line_quads weight,
                       const struct operand *o, const struct four_lines *line)
{
    enum { REST = ROW_VECS % SUM_VECS, WHOLE = (ROW_VECS - REST) * LANES };
    for (u32 d = 0; d + SUM_VECS * LANES <= WIDTH; d += SUM_VECS * LANES)
        lines_sum(to, d, SUM_VECS, factor, weight, o, line);
    if (REST)
        lines_sum(to, WHOLE, REST, factor, weight, o, line);
}

/* Those sums to the four rows i .. i + 3 of a tensor, as far as they are live. */
static void four_write(const struct sequence *s, const struct abi_tensor *t, u32 i, u32 live,
                       quad factor, const line_quads weight, const struct operand *o,
                       const struct four_lines *line)
{
    float buffer[FOUR][WIDTH];
    float *to[FOUR];
    for (u32 r = 0; r < FOUR; r++) {
        to[r] = buffer[r];
        if (!ROWS_PACKED && live >> r & 1)
            to[r] = (float *)t->data + element_at(s, t, i + r);
    }
    lines_sums(to, factor, weight, o, line);
    for (u32 r = 0; ROWS_PACKED && r < FOUR; r++)
        if (live >> r & 1)
            row_write(s, t, i + r, 1, buffer[r]);
}

/* Dot products of the four rows with their columns, times a factor; `missing` where a line does not
   cover a row, and to the end of the last vector. */
static void lines_dots(line_quads to, const struct four_rows *x, const struct operand *o,
                       const struct four_lines *line, float factor, float missing)
{
    const struct four_rows rows = *x;
    for (u32 k = 0; k < line->count; k++) {
        const float *row[FOUR];
        vec s[FOUR] = {{0}};
        line_rows(o, &line->at[k], line->first, row);
        for (u32 v = 0; v < ROW_VECS; v++)
            for (u32 r = 0; r < FOUR; r++)
                s[r] += rows.at[r][v] * row_load(row[r], v * LANES);
        *(quad_at *)to[k] = sum4(s[0], s[1], s[2], s[3]) * factor;
        if (line->at[k].rows != ALL_FOUR)
            for (u32 r = 0; r < FOUR; r++)
                to[k][r] = line->at[k].rows >> r & 1 ? to[k][r] : missing;
    }
    for (u32 k = line->count; k % VEC_QUADS; k++)
        for (u32 r = 0; r < FOUR; r++)
            to[k][r] = missing;
}

#endif
