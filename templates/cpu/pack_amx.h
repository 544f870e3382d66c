/* SPDX-License-Identifier: Apache-2.0 */
/* Packing for a matrix unit, in bf16 as the operands came: panels of 16 columns for scores, pairs of
   rows for sums; rows as floats where the plan walks. What is beyond the sequence's length is zero,
   as far as 32 columns from a multiple of 16 may reach. */
#ifndef MASKC_CPU_PACK_AMX_H
#define MASKC_CPU_PACK_AMX_H

INLINE u32 matrix_columns(const struct sequence *s)
{
    return (s->length + TILE - 1) / TILE * TILE + MATRIX_COLS;
}

/* A row's words of two features, or null beyond the length. */
INLINE const u16 *half_row(const struct sequence *s, enum operand_kind k, u32 i)
{
    static const u16 zero[HEAD_DIM];
    const struct abi_tensor *t = operand_tensor(s->a, k);
    return i < s->length ? (const u16 *)t->data + element_at(s, t, i) : zero;
}

/* Words are moved as floats: nothing is computed with them. */
static void panels_pack(const struct sequence *s, enum operand_kind k)
{
    float *to = pack_panels(s, k);
    for (u32 c = 0; c < matrix_columns(s); c += 4) {
        const float *row[4];
        float *panel = to + c / MATRIX_COLS * (MATRIX_COLS * DEPTH / 2) + c % MATRIX_COLS;
        for (u32 r = 0; r < 4; r++)
            row[r] = (const float *)(const void *)half_row(s, k, c + r);
        for (u32 d = 0; d < HEAD_DIM / 2; d += 4)
            transpose_quads(row, d, panel + d * MATRIX_COLS, MATRIX_COLS);
        for (u32 d = HEAD_DIM / 2; d < DEPTH / 2; d++)
            *(quad_at *)(panel + d * MATRIX_COLS) = (quad){0};
    }
}

static void pairs_pack(const struct sequence *s, enum operand_kind k)
{
    u32 *to = pack_pairs(s, k);
    for (u32 i = 0; i < matrix_columns(s); i += 2, to += WIDTH) {
        const u16 *low = half_row(s, k, i), *high = half_row(s, k, i + 1);
        for (u32 d = 0; d < HEAD_DIM; d++)
            to[d] = low[d] | (u32)high[d] << 16;
        for (u32 d = HEAD_DIM; d < WIDTH; d++)
            to[d] = 0;
    }
}

static void operand_pack(const struct sequence *s, enum operand_kind k, u32 uses, u32 roles)
{
    if (!WALKS_HALF && uses & ~PRODUCTS)
        rows_pack(s, k);
    if (uses & PRODUCTS && roles & FOR_SCORES)
        panels_pack(s, k);
    if (uses & PRODUCTS && roles & FOR_SUMS)
        pairs_pack(s, k);
}

#endif
