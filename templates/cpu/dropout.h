/* SPDX-License-Identifier: Apache-2.0 */
/* Which entries dropout keeps, as bits: drawn tile by tile, stored for the block, applied to whole rows. */
#ifndef MASKC_CPU_DROPOUT_H
#define MASKC_CPU_DROPOUT_H
#include "cpu/row_block.h"
#include "philox.h"

INLINE int dropping(const struct row_block *t)
{
    return DROPOUT && t->s.a->keep_below != 0;
}

/* Bits of an aligned 32 x 32 tile of the row block: word r, bit c. One call of Philox draws 8 entries. */
static void keep_tile(const struct row_block *t, u32 col0, u32 keep[BLOCK_ROWS])
{
    const struct abi_args *a = t->s.a;
    u32 row0 = t->item->row0, i0 = t->transposed ? col0 : row0,
        j0 = t->transposed ? row0 : col0;
    for (u32 r = 0; r < BLOCK_ROWS; r++)
        keep[r] = 0;
    for (u32 call = 0; call < TILE * TILE / 8; call++) {
        u32 i = (call >> 6) * 16 + (call >> 2) % 8, j = (call >> 5) % 2 * 16 + 2 * (call % 4);
        struct philox x = philox_4x32(dropout_counter(t->s.b, t->s.h, i0 + i, j0 + j), a->seed);
        const u32 word[4] = {x.x, x.y, x.z, x.w};
        for (u32 w = 0; w < 4; w++) {
            u32 low = (word[w] & 0xffff) >= a->keep_below,
                high = word[w] >> 16 >= a->keep_below;
            u32 jw = j + (w >> 1) + 8 * (w & 1);
            if (t->transposed) {
                keep[jw] |= low << i | high << (i + 8);
            } else {
                keep[i] |= low << jw;
                keep[i + 8] |= high << jw;
            }
        }
    }
}

/* Bits of 32 columns from `col`, wherever they begin. */
static void keep_columns(const struct row_block *t, u32 col, u32 keep[BLOCK_ROWS])
{
    u32 next[BLOCK_ROWS], shift = col % TILE;
    keep_tile(t, col - shift, keep);
    if (!shift)
        return;
    keep_tile(t, col - shift + TILE, next);
    for (u32 r = 0; r < BLOCK_ROWS; r++)
        keep[r] = keep[r] >> shift | next[r] << (TILE - shift);
}

INLINE int keep_entry(const struct row_block *t, u32 row, u32 col)
{
    const struct abi_args *a = t->s.a;
    u32 i = t->transposed ? col : row, j = t->transposed ? row : col;
    return dropout_draw(a->seed, t->s.b, t->s.h, i, j) >= a->keep_below;
}

INLINE void keep_put(struct block *b, u32 r, u32 at, u32 width, u32 bits)
{
    u32 *word = &b->keep[r][at / 32], shift = at % 32;
    bits = width < 32 ? bits & ((1u << width) - 1) : bits;
    word[0] |= bits << shift;
    if (shift)
        word[1] |= bits >> (32 - shift);
}

INLINE ivec keep_mask(const struct block *b, u32 r, u32 c)
{
    return mask_of_bits(b->keep[r][c / 32] >> (c % 32));
}

static void keep_clear(const struct row_block *t, struct block *b)
{
    for (u32 r = 0; r < t->rows; r++)
        for (u32 k = 0; k < KEEP_WORDS; k++)
            b->keep[r][k] = 0;
}

/* Dropped P become 0. The scale of kept ones is applied to the sums. */
static void block_drop(const struct row_block *t, struct block *b)
{
    for (u32 r = 0; r < t->rows; r++)
        for (u32 c = 0; c < b->cols; c += LANES)
            store(&b->score[r][c], pick_or_zero(keep_mask(b, r, c), load(&b->score[r][c])));
}

#endif
