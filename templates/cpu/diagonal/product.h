/* SPDX-License-Identifier: Apache-2.0 */
/* Products along diagonals, by vectors, four rows at a time. */
#ifndef MASKC_CPU_DIAGONAL_PRODUCT_H
#define MASKC_CPU_DIAGONAL_PRODUCT_H
#include "cpu/column_list.h"
#include "cpu/diagonal/run.h"
#include "cpu/write.h"

struct four_rows {
    vec at[FOUR][ROW_VECS];
};

/* Factors of four of the 16 rows, from `first` on: rows of the operand where these diagonals are. */
struct four_columns {
    const struct operand *o;
    const struct diagonal_at *diagonal;
    u32 diagonals, first;
};

/* The operand's rows for the diagonal's columns at four of the 16 rows, from `first` on; zeros for rows whose bit of
   `rows` is not set. */
INLINE void diagonal_operand_rows(const struct operand *o, const struct diagonal_at *x,
                                  u32 first, u32 rows, const float *row[FOUR])
{
    const float *from = o->rows + (x->column + (i32)(x->step * first)) * o->stride;
    i64 by = x->step ? o->stride : 0;
    for (u32 k = 0; k < FOUR; k++)
        row[k] = from + k * by;
    if (rows != ALL_FOUR)
        for (u32 k = 0; k < FOUR; k++)
            row[k] = rows >> k & 1 ? row[k] : no_row;
}

/* The row's floats: where they lie, or else converted in `buffer`, deinterleaved. */
INLINE const float *row_floats(const struct sequence *s, const struct abi_tensor *t, u32 i,
                               float *buffer)
{
    if (!ROWS_PACKED)
        return (const float *)t->data + element_at(s, t, i);
    row_read(s, t, i, 1, buffer);
    row_deinterleave(buffer);
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

/* Four rows' sums across lanes times `scale`; `fill` for rows whose bit of `rows` is not set. */
INLINE void diagonal_put(float *to, u32 rows, const vec sum[FOUR], float scale, float fill)
{
    *(quad_at *)to = sum4(sum[0], sum[1], sum[2], sum[3]) * scale;
    if (rows != ALL_FOUR)
        for (u32 r = 0; r < FOUR; r++)
            to[r] = rows >> r & 1 ? to[r] : fill;
}

static void four_dots(float (*to)[DIAGONAL_ROWS], const struct four_rows *x,
                      struct four_columns c, float scale, float fill)
{
    const struct four_rows rows = *x;
    const quad none = {fill, fill, fill, fill};
    for (u32 k = 0; k < c.diagonals; k++) {
        const u32 some = (u32)c.diagonal[k].rows >> c.first & ALL_FOUR;
        const float *row[FOUR];
        vec sum[FOUR] = {{0}};
        if (!some) {
            *(quad_at *)(to[k] + c.first) = none;
            continue;
        }
        diagonal_operand_rows(c.o, &c.diagonal[k], c.first, some, row);
        for (u32 v = 0; v < ROW_VECS; v++)
            for (u32 r = 0; r < FOUR; r++)
                sum[r] += rows.at[r][v] * row_load(row[r], v * LANES);
        diagonal_put(to[k] + c.first, some, sum, scale, fill);
    }
}

/* Dot products of rows of a tensor with their diagonals' columns, times `scale`; `fill` where a diagonal does not cover
   a row. */
static void diagonal_dots_vector(diagonal_numbers to, const struct diagonal_run *w,
                                 const struct abi_tensor *t, const struct operand *o,
                                 float scale, float fill)
{
    for (u32 b = 0; b < w->blocks; b++) {
        const struct diagonal_rows *x = &w->rows[b];
        for (u32 first = 0; first < DIAGONAL_ROWS; first += FOUR) {
            struct four_rows rows;
            four_read(w->s, t, x->i + first, x->live >> first, &rows);
            four_dots(to + x->first, &rows,
                      (struct four_columns){o, w->diagonal + x->first, x->count, first}, scale,
                      fill);
        }
    }
}

/* Operands and destination of the sums of four of the 16 rows, from `first` on. */
struct four_operands {
    const struct operand *o;
    const struct diagonal_at *diagonal;
    const float (*p)[DIAGONAL_ROWS];
    u32 first;
    u16 *halves; /* where they go as bf16, `stride` from row to row; null: as floats */
    i64 stride;
    int streamed; /* past the caches */
};

#if MATRIX
INLINE void halves_put(u16 *to, const vec *sum, u32 vecs, int streamed)
{
    for (u32 v = 0; v < vecs; v += 2)
        half_put2(to + v * LANES, sum[v], sum[v + 1], streamed);
}
#else
INLINE void halves_put(u16 *to, const vec *sum, u32 vecs, int streamed)
{
    (void)to, (void)sum, (void)vecs, (void)streamed;
}
#endif

/* sum += p x row, `vecs` vectors from feature d. */
INLINE void four_add(vec sum[FOUR][SUM_VECS], const float *const row[FOUR], const float *p,
                     u32 d, u32 vecs)
{
    for (u32 r = 0; r < FOUR; r++) {
        vec w = splat(p[r]);
        for (u32 v = 0; v < vecs; v++)
            sum[r][v] += w * row_load(row[r], d + v * LANES);
    }
}

/* Diagonals begin .. end - 1, of any kind. */
INLINE void four_add_some(vec sum[FOUR][SUM_VECS], const struct four_operands *f, u32 begin,
                          u32 end, u32 d, u32 vecs)
{
    for (u32 k = begin; k < end; k++) {
        const u32 some = (u32)f->diagonal[k].rows >> f->first & ALL_FOUR;
        const float *row[FOUR];
        if (!some)
            continue;
        diagonal_operand_rows(f->o, &f->diagonal[k], f->first, some, row);
        four_add(sum, row, f->p[k] + f->first, d, vecs);
    }
}

/* Fast path: diagonals that cover all 16 rows, no masking. */
INLINE void four_add_plain(vec sum[FOUR][SUM_VECS], const struct four_operands *f, u32 begin,
                           u32 end, u32 d, u32 vecs)
{
    const i64 stride = f->o->stride;
    const float *from[FOUR];
    for (u32 r = 0; r < FOUR; r++)
        from[r] = f->o->rows + (f->first + r) * stride;
    for (u32 k = begin; k < end; k++) {
        const i64 at = f->diagonal[k].column * stride;
        const float *const row[FOUR] = {from[0] + at, from[1] + at, from[2] + at, from[3] + at};
        four_add(sum, row, f->p[k] + f->first, d, vecs);
    }
}

/* Sums over columns of scale[row] x p x the column's row, `vecs` vectors from feature d. */
INLINE void four_sum(float *const to[FOUR], u32 d, u32 vecs, const float *scale,
                     const struct four_operands *f, const struct diagonal_rows *x)
{
    vec sum[FOUR][SUM_VECS] = {{{0}}};
    four_add_some(sum, f, 0, x->plain, d, vecs);
    four_add_plain(sum, f, x->plain, x->special, d, vecs);
    four_add_some(sum, f, x->special, x->count, d, vecs);
    for (u32 r = 0; r < FOUR; r++) {
        for (u32 v = 0; v + 2 <= vecs; v += 2)
            vecs_interleave(&sum[r][v]);
        for (u32 v = 0; v < vecs; v++)
            sum[r][v] *= splat(scale[f->first + r]);
        if (f->halves)
            halves_put(f->halves + r * f->stride + d, sum[r], vecs, f->streamed);
        else
            for (u32 v = 0; v < vecs; v++)
                store(to[r] + d + v * LANES, sum[r][v]);
    }
}

static void four_sums(float *const to[FOUR], const float *scale, const struct four_operands *f,
                      const struct diagonal_rows *x)
{
    enum { REST = ROW_VECS % SUM_VECS, WHOLE = (ROW_VECS - REST) * LANES };
    for (u32 d = 0; d + SUM_VECS * LANES <= WIDTH; d += SUM_VECS * LANES)
        four_sum(to, d, SUM_VECS, scale, f, x);
    if (REST)
        four_sum(to, WHOLE, REST, scale, f, x);
}

/* The same for all features, to the live rows of a tensor. */
static void diagonal_sums(struct diagonal_run *w, const struct diagonal_rows *x,
                          const struct abi_tensor *t, const float *scale,
                          const diagonal_numbers p, const struct operand *o)
{
    struct four_operands f = {.o = o, .diagonal = w->diagonal + x->first, .p = p + x->first};
    float buffer[FOUR][WIDTH];
    u16 *halves = (u16 *)t->data + element_at(w->s, t, x->i);
    f.stride = t->row;
    f.streamed = rows_streamed(w->s, t);
    for (u32 first = 0; first < DIAGONAL_ROWS; first += FOUR) {
        const u32 some = x->live >> first & ALL_FOUR;
        float *to[FOUR];
        f.first = first;
        f.halves = WRITES_WHOLE && some == ALL_FOUR && !holds_floats(w->s, t)
                       ? halves + (i64)first * t->row
                       : 0;
        for (u32 r = 0; r < FOUR; r++) {
            to[r] = buffer[r];
            if (!ROWS_PACKED && some >> r & 1)
                to[r] = (float *)t->data + element_at(w->s, t, x->i + first + r);
        }
        prefetch_rows(&w->prefetch, FOUR);
        if (some)
            four_sums(to, scale, &f, x);
        for (u32 r = 0; ROWS_PACKED && !f.halves && r < FOUR; r++)
            if (some >> r & 1)
                row_write(w->s, t, x->i + first + r, 1, buffer[r]);
    }
}

#endif
