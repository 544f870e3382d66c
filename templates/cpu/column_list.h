/* SPDX-License-Identifier: Apache-2.0 */
/* Column lists, for diagonals and global rows: each row has columns of its own. A score is a dot product with one row
   of the operand; later p times that row is added to the sums. Four dot products share the additions across lanes. */
#ifndef MASKC_CPU_COLUMN_LIST_H
#define MASKC_CPU_COLUMN_LIST_H
#include "cpu/dropout.h"

/* Columns that a row has in a tile: all, or as many as its last slot says. */
enum { FEWER = 1u << 30 };

INLINE u32 list_count(const u32 *column, u32 width)
{
    u32 last = column[width - 1];
    return last & FEWER ? last & ~(u32)FEWER : width;
}

/* The lists of a tile's rows, from score column `at` of the block on, and how many columns each has. */
struct column_lists {
    struct block *b;
    u32 at, *count;
};

/* Appends a diagonal's columns to the lists of the rows that it covers, of rows first .. rows - 1. */
INLINE void diagonal_columns(const struct abi_line *diagonal, struct column_lists to,
                             u32 length, u32 first, u32 rows)
{
    i64 begin = diagonal->row_begin > first ? diagonal->row_begin : first;
    i64 end = diagonal->row_end < rows ? diagonal->row_end : rows;
    if (diagonal->step && end > (i64)length - diagonal->col0)
        end = (i64)length - diagonal->col0;
    if (!diagonal->step && diagonal->col0 >= (i64)length)
        return;
    for (i64 r = begin; r < end; r++)
        to.b->column[r][to.at + to.count[r]++] = (u32)(diagonal->col0 + diagonal->step * r);
}

/* Rows first .. end - 1, which every diagonal of the tile covers. */
struct covered {
    u32 first, end;
};

static struct covered diagonals_covered(const struct abi_line *diagonal, u32 diagonals,
                                        u32 length, u32 rows)
{
    struct covered w = {0, rows};
    for (u32 k = 0; k < diagonals; k++) {
        u32 end = diagonal[k].row_end;
        i64 left = (i64)length - diagonal[k].col0;
        if (left <= 0 || (diagonal[k].step && left < end))
            end = left > 0 ? (u32)left : 0;
        w.first = diagonal[k].row_begin > w.first ? diagonal[k].row_begin : w.first;
        w.end = end < w.end ? end : w.end;
    }
    w.first = w.first < w.end ? w.first : w.end;
    return w;
}

/* Columns of those rows, LANES diagonals at a time. */
static void covered_columns(struct block *b, const struct abi_line *diagonal,
                            const struct column_tile *tile, struct covered w)
{
    for (u32 k = 0; k < tile->width; k += LANES) {
        u32 some = tile->width - k < LANES ? tile->width - k : LANES;
        i32 col0[LANES] = {0}, step[LANES] = {0};
        for (u32 x = 0; x < some; x++) {
            col0[x] = diagonal[k + x].col0;
            step[x] = (i32)diagonal[k + x].step;
        }
        ivec from = (ivec)load((const float *)(const void *)col0);
        ivec by = (ivec)load((const float *)(const void *)step);
        for (u32 r = w.first; r < w.end; r++)
            store((float *)(void *)&b->column[r][tile->at + k], (vec)(from + by * (i32)r));
    }
}

/* The active columns of each row in this tile, in order. */
static void list_columns(const struct row_block *t, struct block *b,
                         const struct column_tile *tile)
{
    u32 count[BLOCK_ROWS] = {0};
    struct covered w = {0, 0};
    if (tile->kind == TILE_RANGE) {
        for (u32 k = 0; k < tile->width; k++)
            b->column[0][tile->at + count[0]++] = tile->first + k;
    } else {
        const struct abi_line *diagonal = t->plan->lines + tile->first;
        w = diagonals_covered(diagonal, tile->width, t->s.column_length, t->rows);
        covered_columns(b, diagonal, tile, w);
        for (u32 k = 0; k < tile->width; k++) {
            diagonal_columns(&diagonal[k], (struct column_lists){b, tile->at, count},
                             t->s.column_length, 0, w.first);
            diagonal_columns(&diagonal[k], (struct column_lists){b, tile->at, count},
                             t->s.column_length, w.end, t->rows);
        }
    }
    for (u32 r = w.first; r < w.end; r++)
        count[r] = tile->width;
    for (u32 r = 0; r < t->rows; r++)
        if (!row_live(t, r) || count[r] < tile->width)
            b->column[r][tile->at + tile->width - 1] = FEWER | (row_live(t, r) ? count[r] : 0);
}

INLINE const float *operand_row(const struct operand *o, u32 j)
{
    return o->rows + j * o->stride;
}

/* Features d .. of an operand's row. */
INLINE vec row_load(const float *row, u32 d)
{
#if MATRIX
    if (LISTS_DEINTERLEAVED) {
        uvec x = *(const uvec_at *)(const void *)((const u16 *)(const void *)row +
                                                  d / (2 * LANES) * (2 * LANES));
        return (vec)(d / LANES % 2 ? x & 0xffff0000 : x << 16);
    }
    if (LISTS_HALF)
        return half_load((const u16 *)(const void *)row + d);
#endif
    return load(row + d);
}

INLINE quad dots4(const float *a, const float *b0, const float *b1, const float *b2,
                  const float *b3)
{
    vec s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (u32 d = 0; d < WIDTH; d += LANES) {
        vec x = load(a + d);
        s0 += x * row_load(b0, d);
        s1 += x * row_load(b1, d);
        s2 += x * row_load(b2, d);
        s3 += x * row_load(b3, d);
    }
    return sum4(s0, s1, s2, s3);
}

/* Dot products with `count` rows of an operand; up to three more floats are overwritten. */
static void list_dots(const float *a, const struct operand *o, const u32 *column, u32 count,
                      float *to)
{
    u32 k = 0;
    for (; k + 4 <= count; k += 4)
        *(quad_at *)(to + k) =
            dots4(a, operand_row(o, column[k]), operand_row(o, column[k + 1]),
                  operand_row(o, column[k + 2]), operand_row(o, column[k + 3]));
    if (k == count)
        return;
    u32 last = count - 1, second = k + 1 < last ? k + 1 : last;
    *(quad_at *)(to + k) = dots4(a, operand_row(o, column[k]), operand_row(o, column[second]),
                                 operand_row(o, column[last]), operand_row(o, column[last]));
}

/* Scores of a tile, -inf for slots that a row does not use. */
static void list_scores(const struct row_block *t, struct block *b,
                        const struct column_tile *tile)
{
    for (u32 r = 0; r < t->rows; r++) {
        const u32 *column = &b->column[r][tile->at];
        float *to = &b->score[r][tile->at];
        u32 count = list_count(column, tile->width);
        list_dots(t->m->row[0][r], &t->operand[0], column, count, to);
        for (u32 k = count; k < tile->width; k++)
            to[k] = -INFINITY_F;
    }
}

/* A row's P (or dS) in a tile, and the columns that belong to it. */
struct list {
    const float *p;
    const u32 *column;
    u32 count;
};

enum { LIST_LANES = 4 * LANES };

INLINE void put(float *to, int add, vec x)
{
    store(to, add ? load(to) + x : x);
}

/* to (+)= scale x p x rows, four vectors wide. The sums stay in registers over all columns of the row; two chains of
   additions hide their latency. */
INLINE void list_product4(float *to, int add, float scale, const struct operand *o,
                          struct list x, u32 d)
{
    const float *rows = o->rows;
    const i64 stride = o->stride;
    vec s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, t0 = {0}, t1 = {0}, t2 = {0}, t3 = {0};
    u32 k = 0;
    for (; k + 2 <= x.count; k += 2) {
        const float *row = rows + x.column[k] * stride, *next = rows + x.column[k + 1] * stride;
        vec w = splat(x.p[k]), y = splat(x.p[k + 1]);
        s0 += w * row_load(row, d);
        s1 += w * row_load(row, d + LANES);
        s2 += w * row_load(row, d + 2 * LANES);
        s3 += w * row_load(row, d + 3 * LANES);
        t0 += y * row_load(next, d);
        t1 += y * row_load(next, d + LANES);
        t2 += y * row_load(next, d + 2 * LANES);
        t3 += y * row_load(next, d + 3 * LANES);
    }
    if (k < x.count) {
        const float *row = rows + x.column[k] * stride;
        vec w = splat(x.p[k]);
        s0 += w * row_load(row, d);
        s1 += w * row_load(row, d + LANES);
        s2 += w * row_load(row, d + 2 * LANES);
        s3 += w * row_load(row, d + 3 * LANES);
    }
    vec f = splat(scale);
    vec sum[4] = {(s0 + t0) * f, (s1 + t1) * f, (s2 + t2) * f, (s3 + t3) * f};
    vecs_interleave(sum);
    vecs_interleave(sum + 2);
    for (u32 v = 0; v < 4; v++)
        put(to + v * LANES, add, sum[v]);
}

/* Two vectors, which belong together where features are deinterleaved. */
INLINE void list_product2(float *to, int add, float scale, const struct operand *o,
                          struct list x, u32 d)
{
    vec s[2] = {{0}, {0}};
    for (u32 k = 0; k < x.count; k++)
        for (u32 v = 0; v < 2; v++)
            s[v] +=
                splat(x.p[k] * scale) * row_load(operand_row(o, x.column[k]), d + v * LANES);
    vecs_interleave(s);
    put(to, add, s[0]);
    put(to + LANES, add, s[1]);
}

INLINE void list_product1(float *to, int add, float scale, const struct operand *o,
                          struct list x, u32 d)
{
    vec s = {0};
    for (u32 k = 0; k < x.count; k++)
        s += splat(x.p[k]) * row_load(operand_row(o, x.column[k]), d);
    put(to, add, s * splat(scale));
}

INLINE void list_product(float *to, int add, float scale, const struct operand *o,
                         struct list x)
{
    u32 d = 0;
    for (; d + LIST_LANES <= WIDTH; d += LIST_LANES)
        list_product4(to + d, add, scale, o, x, d);
    for (; LISTS_DEINTERLEAVED && d < WIDTH; d += 2 * LANES)
        list_product2(to + d, add, scale, o, x, d);
    for (; d < WIDTH; d += LANES)
        list_product1(to + d, add, scale, o, x, d);
}

static void list_sums(const struct row_block *t, const struct block *b,
                      const struct column_tile *tile, const float (*p)[SCORE_STRIDE],
                      u32 operand, float (*sums)[WIDTH])
{
    const struct operand *o = &t->operand[operand];
    for (u32 r = 0; r < t->rows; r++) {
        const u32 *column = &b->column[r][tile->at];
        const float *w = &p[r][tile->at];
        u32 count = list_count(column, tile->width);
        list_product(sums[r], 1, 1, o, (struct list){w, column, count});
    }
}

#endif
