/* SPDX-License-Identifier: Apache-2.0 */
/* Packing, once for each head of each sequence: operands transposed into panels, so that vectors
   run along score columns, and rows as floats where the caller's are not. */
#ifndef MASKC_CPU_PACK_H
#define MASKC_CPU_PACK_H
#include "cpu/pack/transpose.h"

#if MATRIX
#include "cpu/matrix/pack.h"
#else

/* The used columns of one panel, from `first`; those at or beyond the sequence's length are zero. */
static void panel_pack(const struct sequence *s, const struct operand *o, const struct used *u,
                       u32 first, u32 stride, float *to)
{
    static const float zero[HEAD_DIM];
    u32 columns = stride - 16;
    for (u32 c = 0; c < columns; c += 4) {
        const float *row[4];
        if (!used_at(u, first + c))
            continue;
        for (u32 k = 0; k < 4; k++)
            row[k] = first + c + k < s->length ? o->rows + (first + c + k) * o->stride : zero;
        for (u32 d = 0; d < HEAD_DIM; d += 4)
            transpose_quads(row, d, to + d * stride + c, stride);
    }
}

static void operand_pack(const struct sequence *s, enum operand_kind k, u32 uses, u32 roles)
{
    struct operand o = operand_of(s, k);
    struct used u;
    used_find(&u, s, k);
    if (ROWS_PACKED)
        rows_pack(s, k, &u);
    if (!(uses & ABI_PACKED_KINDS) || !(roles & FOR_SCORES))
        return;
    for (u32 p = 0; p * PANEL_COLS < o.padded; p++)
        panel_pack(s, &o, &u, p * PANEL_COLS, panel_stride(o.padded, p),
                   pack_panels(s, k) + panel_first(p));
}

#endif
#endif
