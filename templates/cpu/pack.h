/* SPDX-License-Identifier: Apache-2.0 */
/* Packing, once for each head of each sequence: operands transposed into panels, so that vectors
   run along score columns, and rows as floats where the caller's are not. */
#ifndef MASKC_CPU_PACK_H
#define MASKC_CPU_PACK_H

/* A 4 x 4 block: quads of four rows become quads of four columns. */
INLINE void transpose_quads(const float *const row[4], u32 d, float *to, u32 stride)
{
    quad a = *(const quad_at *)(row[0] + d), b = *(const quad_at *)(row[1] + d);
    quad c = *(const quad_at *)(row[2] + d), e = *(const quad_at *)(row[3] + d);
    quad ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    quad ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    quad ce0 = __builtin_shufflevector(c, e, 0, 4, 1, 5);
    quad ce1 = __builtin_shufflevector(c, e, 2, 6, 3, 7);
    *(quad_at *)to = __builtin_shufflevector(ab0, ce0, 0, 1, 4, 5);
    *(quad_at *)(to + stride) = __builtin_shufflevector(ab0, ce0, 2, 3, 6, 7);
    *(quad_at *)(to + 2 * stride) = __builtin_shufflevector(ab1, ce1, 0, 1, 4, 5);
    *(quad_at *)(to + 3 * stride) = __builtin_shufflevector(ab1, ce1, 2, 3, 6, 7);
}

enum { FOR_SCORES = 1, FOR_SUMS = 2 }; /* what an operand is multiplied for */

static void rows_pack(const struct sequence *s, enum operand_kind k)
{
    for (u32 i = 0; i < s->length; i++)
        row_read(s, operand_tensor(s->a, k), i, 1, pack_rows(s, k) + (u64)i * WIDTH);
}

#if MATRIX
#include "cpu/matrix/pack.h"
#else

/* One panel: columns from `first`; those at or beyond the sequence's length are zero. */
static void panel_pack(const struct sequence *s, const struct operand *o, u32 first, u32 stride,
                       float *to)
{
    static const float zero[HEAD_DIM];
    u32 columns = stride - 16;
    for (u32 c = 0; c < columns; c += 4) {
        const float *row[4];
        for (u32 k = 0; k < 4; k++)
            row[k] = first + c + k < s->length ? o->rows + (first + c + k) * o->stride : zero;
        for (u32 d = 0; d < HEAD_DIM; d += 4)
            transpose_quads(row, d, to + d * stride + c, stride);
    }
}

static void operand_pack(const struct sequence *s, enum operand_kind k, u32 uses, u32 roles)
{
    struct operand o = operand_of(s, k);
    if (ROWS_PACKED)
        rows_pack(s, k);
    if (!(uses & PRODUCTS) || !(roles & FOR_SCORES))
        return;
    for (u32 p = 0; p * PANEL_COLS < o.padded; p++)
        panel_pack(s, &o, p * PANEL_COLS, panel_stride(o.padded, p),
                   pack_panels(s, k) + panel_first(p));
}

#endif
#endif
