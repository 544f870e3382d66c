/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by both ways to pack: a transpose of 4 x 4 blocks, rows as floats. */
#ifndef MASKC_CPU_TRANSPOSE_H
#define MASKC_CPU_TRANSPOSE_H
#include "cpu/pack/used.h"

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

static void rows_pack(const struct sequence *s, enum operand_kind k, const struct used *u)
{
    const u32 end = s->length;
    for (u32 i = used_from(u, 0, end); i < end; i = used_from(u, i + 1, end))
        row_read(s, operand_tensor(s->a, k), i, 1, pack_rows(s, k) + (u64)i * WIDTH);
}

#endif
