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

/* Row i as words to be transposed: features, or for a matrix unit pairs of them. */
INLINE const float *panel_row(const struct sequence *s, enum operand_kind k,
                              const struct operand *o, u32 i)
{
    const struct abi_tensor *t = operand_tensor(s->a, k);
    if (!AMX)
        return o->rows + i * o->stride;
    return (const float *)(const void *)((const u16 *)t->data + element_at(s, t, i));
}

/* One panel: columns from `first`; those at or beyond the sequence's length are zero. */
static void panel_pack(const struct sequence *s, enum operand_kind k, const struct operand *o,
                       u32 first, u32 stride, float *to)
{
    enum { WORDS = AMX ? HEAD_DIM / 2 : HEAD_DIM };
    static const float zero[WORDS];
    u32 columns = stride - 16;
    for (u32 c = 0; c < columns; c += 4) {
        const float *row[4];
        for (u32 r = 0; r < 4; r++)
            row[r] = first + c + r < s->length ? panel_row(s, k, o, first + c + r) : zero;
        for (u32 d = 0; d < WORDS; d += 4)
            transpose_quads(row, d, to + d * stride + c, stride);
    }
    for (u32 d = WORDS; d < PANEL_ROWS; d++)
        for (u32 c = 0; c < columns; c++)
            to[d * stride + c] = 0;
}

#if AMX
static void pairs_pack(const struct sequence *s, enum operand_kind k)
{
    static const u16 zero[HEAD_DIM];
    const struct abi_tensor *t = operand_tensor(s->a, k);
    const u16 *tensor = t->data;
    u32 rows = (s->length + TILE - 1) / TILE * TILE + TILE, *to = pack_pairs(s, k);
    for (u32 i = 0; i < rows; i += 2, to += WIDTH) {
        const u16 *low = i < s->length ? tensor + element_at(s, t, i) : zero;
        const u16 *high = i + 1 < s->length ? tensor + element_at(s, t, i + 1) : zero;
        for (u32 d = 0; d < HEAD_DIM; d++)
            to[d] = low[d] | (u32)high[d] << 16;
        for (u32 d = HEAD_DIM; d < WIDTH; d++)
            to[d] = 0;
    }
}
#endif

static void operand_pack(const struct sequence *s, enum operand_kind k, u32 uses, u32 roles)
{
    const u32 products = 1 << ABI_BLOCKS | 1 << ABI_TILES;
    struct operand o = operand_of(s, k);
    if (ROWS_PACKED && (!AMX || uses & ~products))
        for (u32 i = 0; i < s->length; i++)
            row_read(s, operand_tensor(s->a, k), i, 1, pack_rows(s, k) + (u64)i * WIDTH);
    if (!(uses & products))
        return;
#if AMX
    if (roles & FOR_SUMS)
        pairs_pack(s, k);
#endif
    for (u32 p = 0; roles & FOR_SCORES && p * PANEL_COLS < o.padded; p++)
        panel_pack(s, k, &o, p * PANEL_COLS, panel_stride(o.padded, p),
                   pack_panels(s, k) + panel_first(p));
}

#endif
