/* SPDX-License-Identifier: Apache-2.0 */
/* Packing for a matrix unit, in bf16: panels of 16 columns for scores, pairs of rows for sums; rows as floats where
   column lists need them. Rows beyond the sequence's length are zero, as far as a column tile may reach: 32 columns
   from a multiple of 16. */
#ifndef MASKC_CPU_MATRIX_PACK_H
#define MASKC_CPU_MATRIX_PACK_H
#include "cpu/pack/transpose.h"
#include "cpu/prefetch.h"

INLINE u32 matrix_columns(const struct sequence *s)
{
    return (s->length + TILE - 1) / TILE * TILE + MATRIX_COLS;
}

/* An operand's rows in the caller's tensor. */
struct half_rows {
    const u16 *first;
    i64 stride;
    u32 length; /* rows at or beyond it are zero */
};

static struct half_rows half_rows_of(const struct sequence *s, enum operand_kind k)
{
    const struct abi_tensor *t = operand_tensor(s->a, k);
    return (struct half_rows){(const u16 *)t->data + element_at(s, t, 0), t->row, s->length};
}

INLINE const u16 *half_row(const struct half_rows *x, u32 i)
{
    static const u16 zero[HEAD_DIM];
    return i < x->length ? x->first + i * x->stride : zero;
}

/* Prefetches row i: rows are about a page apart, so hardware does not. */
INLINE void half_row_prefetch(const struct half_rows *x, u32 i)
{
    const u16 *row = x->first + i * x->stride;
    for (u32 d = 0; d < HEAD_DIM; d += 32)
        __builtin_prefetch(row + d);
}

/* Two vectors to one by lanes of 32 bits (UNPACK), of 64 (PAIR) and of 128 (QUARTER: two of each). */
/* clang-format off */
#define UNPACK(a, b, i) __builtin_shufflevector(a, b, \
    i, i + 16, i + 1, i + 17, i + 4, i + 20, i + 5, i + 21, \
    i + 8, i + 24, i + 9, i + 25, i + 12, i + 28, i + 13, i + 29)
#define PAIR(a, b, i) __builtin_shufflevector(a, b, \
    i, i + 1, i + 16, i + 17, i + 4, i + 5, i + 20, i + 21, \
    i + 8, i + 9, i + 24, i + 25, i + 12, i + 13, i + 28, i + 29)
#define QUARTER(a, b, i, k) __builtin_shufflevector(a, b, \
    i, i + 1, i + 2, i + 3, k, k + 1, k + 2, k + 3, \
    i + 16, i + 17, i + 18, i + 19, k + 16, k + 17, k + 18, k + 19)
/* clang-format on */

/* 16 words of each of 16 rows become 16 rows of a panel. Words move as floats; nothing is computed. */
INLINE void transpose_words(const float *const row[16], u32 d, float *to)
{
    vec x[16], y[16];
    for (u32 k = 0; k < 16; k++)
        x[k] = load(row[k] + d);
    for (u32 k = 0; k < 16; k += 2) {
        y[k] = UNPACK(x[k], x[k + 1], 0);
        y[k + 1] = UNPACK(x[k], x[k + 1], 2);
    }
    for (u32 k = 0; k < 16; k += 4)
        for (u32 i = 0; i < 2; i++) {
            x[k + 2 * i] = PAIR(y[k + i], y[k + i + 2], 0);
            x[k + 2 * i + 1] = PAIR(y[k + i], y[k + i + 2], 2);
        }
    for (u32 i = 0; i < 4; i++) {
        vec low0 = QUARTER(x[i], x[i + 4], 0, 4), low1 = QUARTER(x[i + 8], x[i + 12], 0, 4);
        vec high0 = QUARTER(x[i], x[i + 4], 8, 12), high1 = QUARTER(x[i + 8], x[i + 12], 8, 12);
        store(to + i * MATRIX_COLS, QUARTER(low0, low1, 0, 8));
        store(to + (i + 4) * MATRIX_COLS, QUARTER(low0, low1, 4, 12));
        store(to + (i + 8) * MATRIX_COLS, QUARTER(high0, high1, 0, 8));
        store(to + (i + 12) * MATRIX_COLS, QUARTER(high0, high1, 4, 12));
    }
}

/* One panel: 16 rows of an operand, transposed by pairs of features. */
INLINE void panel_of_rows(const float *const row[MATRIX_COLS], float *to)
{
    u32 d = 0;
    for (; d + 16 <= HEAD_DIM / 2; d += 16)
        transpose_words(row, d, to + d * MATRIX_COLS);
    for (; d < HEAD_DIM / 2; d += 4)
        for (u32 c = 0; c < MATRIX_COLS; c += 4)
            transpose_quads(row + c, d, to + d * MATRIX_COLS + c, MATRIX_COLS);
    for (; d < DEPTH / 2; d++)
        store(to + d * MATRIX_COLS, splat(0));
}

enum { AHEAD = 32 }; /* rows that are prefetched ahead */

static void panels_pack(const struct sequence *s, enum operand_kind k, const struct used *u)
{
    const struct half_rows from = half_rows_of(s, k);
    const u32 prefetch_end = tensors_far(s) ? s->length : 0;
    const u32 end = matrix_columns(s);
    for (u32 c = used_from(u, 0, end); c < end; c = used_from(u, c + MATRIX_COLS, end)) {
        const float *row[MATRIX_COLS];
        for (u32 r = 0; r < MATRIX_COLS; r++)
            row[r] = (const float *)(const void *)half_row(&from, c + r);
        for (u32 r = AHEAD; r < AHEAD + MATRIX_COLS; r++)
            if (c + r < prefetch_end)
                half_row_prefetch(&from, c + r);
        panel_of_rows(row, pack_panels(s, k) + (u64)c * (DEPTH / 2));
    }
}

INLINE void pair_of_rows(const u16 *low, const u16 *high, u32 *to)
{
    for (u32 d = 0; d < HEAD_DIM; d++)
        to[d] = low[d] | (u32)high[d] << 16;
    for (u32 d = HEAD_DIM; d < WIDTH; d++)
        to[d] = 0;
}

static void pairs_pack(const struct sequence *s, enum operand_kind k, const struct used *u)
{
    const struct half_rows from = half_rows_of(s, k);
    const u32 prefetch_end = tensors_far(s) ? s->length : 0;
    const u32 end = matrix_columns(s);
    for (u32 i = used_from(u, 0, end); i < end; i = used_from(u, i + 2, end)) {
        if (i + 1 + AHEAD < prefetch_end) {
            half_row_prefetch(&from, i + AHEAD);
            half_row_prefetch(&from, i + 1 + AHEAD);
        }
        pair_of_rows(half_row(&from, i), half_row(&from, i + 1),
                     pack_pairs(s, k) + (u64)i / 2 * WIDTH);
    }
}

static void rows_copy(const struct sequence *s, enum operand_kind k, const struct used *u)
{
    const struct half_rows from = half_rows_of(s, k);
    const u32 end = s->length;
    for (u32 i = used_from(u, 0, end); i < end; i = used_from(u, i + 1, end)) {
        float *to = pack_rows(s, k) + (u64)i * (HEAD_DIM / 2);
        if (i + AHEAD < s->length)
            half_row_prefetch(&from, i + AHEAD);
        const float *row = (const float *)(const void *)half_row(&from, i);
        for (u32 d = 0; d < HEAD_DIM / 2; d += 8)
            *(oct_at *)(to + d) = *(const oct_at *)(row + d);
    }
}

static void operand_pack(const struct sequence *s, enum operand_kind k, u32 uses, u32 roles)
{
    struct used u;
    used_find(&u, s, k);
    if (!LISTS_HALF && uses & ~ABI_PACKED_KINDS)
        rows_pack(s, k, &u);
    if (rows_copied(s, k))
        rows_copy(s, k, &u);
    if (uses & ABI_PACKED_KINDS && roles & FOR_SCORES)
        panels_pack(s, k, &u);
    if (uses & ABI_PACKED_KINDS && roles & FOR_SUMS)
        pairs_pack(s, k, &u);
}

#endif
