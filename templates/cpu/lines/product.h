/* SPDX-License-Identifier: Apache-2.0 */
/* Products along lines, by vectors and four rows at a time. */
#ifndef MASKC_CPU_LINES_PRODUCT_H
#define MASKC_CPU_LINES_PRODUCT_H

struct four_rows {
    vec at[FOUR][ROW_VECS];
};

/* The columns' rows of an operand, of the four rows from row `first` of those abreast on, `rows` their bits;
   zeros for those that the line does not cover. */
INLINE void line_rows(const struct operand *o, const struct line_at *x, u32 first, u32 rows,
                      const float *row[FOUR])
{
    const float *from = o->rows + (x->column + x->step * first) * o->stride;
    i64 by = x->step ? o->stride : 0;
    for (u32 k = 0; k < FOUR; k++)
        row[k] = from + k * by;
    if (rows != ALL_FOUR)
        for (u32 k = 0; k < FOUR; k++)
            row[k] = rows >> k & 1 ? row[k] : no_row;
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

/* Numbers of four rows, `rows` the bits of those that the line covers: their sums times a factor, or `missing`. */
INLINE void line_put(float *to, u32 rows, const vec sum[FOUR], float factor, float missing)
{
    *(quad_at *)to = sum4(sum[0], sum[1], sum[2], sum[3]) * factor;
    if (rows != ALL_FOUR)
        for (u32 r = 0; r < FOUR; r++)
            to[r] = rows >> r & 1 ? to[r] : missing;
}

static void four_dots(line_numbers to, u32 first, const struct four_rows *x,
                      const struct operand *o, const struct lines_here *lines, float factor,
                      float missing)
{
    const struct four_rows rows = *x;
    const quad none = {missing, missing, missing, missing};
    for (u32 k = 0; k < lines->count; k++) {
        const u32 some = lines->at[k].rows >> first & ALL_FOUR;
        const float *row[FOUR];
        vec sum[FOUR] = {{0}};
        if (!some) {
            *(quad_at *)(to[k] + first) = none;
            continue;
        }
        line_rows(o, &lines->at[k], first, some, row);
        for (u32 v = 0; v < ROW_VECS; v++)
            for (u32 r = 0; r < FOUR; r++)
                sum[r] += rows.at[r][v] * row_load(row[r], v * LANES);
        line_put(to[k] + first, some, sum, factor, missing);
    }
}

/* Dot products of the rows from i on of a tensor, `live` their bits, with the lines' columns, times a factor;
   `missing` where a line does not cover a row. */
static void lines_dots_four(line_numbers to, const struct sequence *s,
                            const struct abi_tensor *t, u32 i, u32 live,
                            const struct operand *o, const struct lines_here *lines,
                            float factor, float missing)
{
    for (u32 first = 0; first < ABREAST; first += FOUR) {
        struct four_rows rows;
        four_read(s, t, i + first, live >> first, &rows);
        four_dots(to, first, &rows, o, lines, factor, missing);
    }
}

/* Sums over columns of factor[row] x weight x the column's row, `vecs` vectors from feature d, of the four
   rows from `first` on. */
INLINE void four_sum(float *const to[FOUR], u32 d, u32 vecs, const float *factor, u32 first,
                     const line_numbers weight, const struct operand *o,
                     const struct lines_here *lines)
{
    vec sum[FOUR][SUM_VECS] = {{{0}}};
    for (u32 k = 0; k < lines->count; k++) {
        const u32 some = lines->at[k].rows >> first & ALL_FOUR;
        const float *row[FOUR];
        if (!some)
            continue;
        line_rows(o, &lines->at[k], first, some, row);
        for (u32 r = 0; r < FOUR; r++) {
            vec w = splat(weight[k][first + r]);
            for (u32 v = 0; v < vecs; v++)
                sum[r][v] += w * row_load(row[r], d + v * LANES);
        }
    }
    for (u32 r = 0; r < FOUR; r++) {
        for (u32 v = 0; v + 2 <= vecs; v += 2)
            vecs_join(&sum[r][v]);
        for (u32 v = 0; v < vecs; v++)
            store(to[r] + d + v * LANES, sum[r][v] * splat(factor[first + r]));
    }
}

static void four_sums(float *const to[FOUR], const float *factor, u32 first,
                      const line_numbers weight, const struct operand *o,
                      const struct lines_here *lines)
{
    enum { REST = ROW_VECS % SUM_VECS, WHOLE = (ROW_VECS - REST) * LANES };
    for (u32 d = 0; d + SUM_VECS * LANES <= WIDTH; d += SUM_VECS * LANES)
        four_sum(to, d, SUM_VECS, factor, first, weight, o, lines);
    if (REST)
        four_sum(to, WHOLE, REST, factor, first, weight, o, lines);
}

/* Those sums to the rows from i on of a tensor, as far as they are live. */
static void lines_sums(const struct sequence *s, const struct abi_tensor *t, u32 i, u32 live,
                       const float *factor, const line_numbers weight, const struct operand *o,
                       const struct lines_here *lines)
{
    float buffer[FOUR][WIDTH];
    for (u32 first = 0; first < ABREAST; first += FOUR) {
        const u32 some = live >> first & ALL_FOUR;
        float *to[FOUR];
        for (u32 r = 0; r < FOUR; r++) {
            to[r] = buffer[r];
            if (!ROWS_PACKED && some >> r & 1)
                to[r] = (float *)t->data + element_at(s, t, i + first + r);
        }
        if (some)
            four_sums(to, factor, first, weight, o, lines);
        for (u32 r = 0; ROWS_PACKED && r < FOUR; r++)
            if (some >> r & 1)
                row_write(s, t, i + first + r, 1, buffer[r]);
    }
}

#endif
