/* SPDX-License-Identifier: Apache-2.0 */
/* Which entries dropout keeps, as bits: drawn tile by tile, stored for the block, applied to whole rows. */
#ifndef MASKC_CPU_DROPOUT_H
#define MASKC_CPU_DROPOUT_H
#include "cpu/draw.h"
#include "cpu/row_block.h"

INLINE int sequence_drops(const struct sequence *s)
{
    return DROPOUT && s->a->keep_below != 0;
}

INLINE int dropping(const struct row_block *t)
{
    return sequence_drops(&t->s);
}

/* The scale of what is kept. */
INLINE float kept_scale(const struct sequence *s)
{
    return sequence_drops(s) ? s->a->keep_scale : 1;
}

INLINE struct draw draw_in(const struct sequence *s)
{
    const struct abi_args *a = s->a;
    return (struct draw){a->seed, dropout_sample(a, s->b), s->h, a->keep_below};
}

INLINE struct draw draw_of(const struct row_block *t)
{
    return draw_in(&t->s);
}

/* Bits of 32 columns from `col`, a multiple of 16, for each row of a row block without steps: word r, bit c. */
INLINE void keep_aligned(const struct row_block *t, u32 col, u32 keep[BLOCK_ROWS])
{
    const struct draw of = draw_of(t);
    if (t->transposed)
        draw_keys(&of, t->item->row0, col, keep);
    else
        draw_queries(&of, t->item->row0, col, keep);
}

/* The same wherever the columns begin. */
static void keep_columns(const struct row_block *t, u32 col, u32 keep[BLOCK_ROWS])
{
    u32 next[BLOCK_ROWS], shift = col % (TILE / 2);
    keep_aligned(t, col - shift, keep);
    if (!shift)
        return;
    keep_aligned(t, col - shift + TILE, next);
    for (u32 r = 0; r < BLOCK_ROWS; r++)
        keep[r] = keep[r] >> shift | next[r] << (TILE - shift);
}

/* All ones in the lanes whose entry is kept. */
INLINE wide keep_entries(const struct row_block *t, wide row, wide col)
{
    const struct draw of = draw_of(t);
    return t->transposed ? draw_entries(&of, col, row) : draw_entries(&of, row, col);
}

INLINE void keep_put(struct block *b, u32 r, u32 at, u32 width, u32 bits)
{
    u32 *word = &b->keep[r][at / 32], shift = at % 32;
    bits = width < 32 ? bits & ((1u << width) - 1) : bits;
    word[0] |= bits << shift;
    if (shift)
        word[1] |= bits >> (32 - shift);
}

/* Bits of score columns c .. c + 31. */
INLINE u32 keep_word(const struct block *b, u32 r, u32 c)
{
    const u32 *word = &b->keep[r][c / 32];
    return (u32)((word[0] | (u64)word[1] << 32) >> (c % 32));
}

static void keep_clear(const struct row_block *t, struct block *b)
{
    for (u32 r = 0; r < t->rows; r++)
        for (u32 k = 0; k < KEEP_WORDS; k++)
            b->keep[r][k] = 0;
}

/* x where the bit is set, else 0. */
INLINE vec lanes_kept(vec x, u32 bits)
{
#if MATRIX
    return lanes_zeroed(x, bits);
#else
    return pick_or_zero(mask_of_bits(bits), x);
#endif
}

#endif
