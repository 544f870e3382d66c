/* SPDX-License-Identifier: Apache-2.0 */
/* The mask of a warp tile by direct index, for kernels that hold all scores of a row: column tile u begins at column
   32 u. Every lane reads a tile of the item, and a reduction over the warp brings each tile to its place. */
#ifndef MASKC_CUDA_RESIDENT_DIRECT_H
#define MASKC_CUDA_RESIDENT_DIRECT_H
#include "cuda/resident/softmax.h"

/* Tile u of the item that has row0: 0 if it is absent, 1 if it is full, else 1 + its pattern. The same for the whole
   warp. */
DEVICE void resident_codes(u32 code[RESIDENT_TILES_AT_ONCE], const struct abi_plan *plan,
                           const struct resident_head *head, u32 row0)
{
    const struct abi_head entry = plan->heads[head->h];
    const u32 item = row0 / BLOCK_ROWS;
    u32 piece = 0, end = 0;
    UNROLL
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++)
        code[u] = 0;
    if (row0 < head->length && item < entry.items) {
        const struct abi_item *at = plan->items + entry.item + item;
        piece = at->piece;
        end = at->piece + at->pieces;
    }
    NO_UNROLL
    for (; piece < end; piece++) {
        const struct abi_piece p = plan->pieces[piece];
        const u32 mine = p.kind == ABI_TILES && lane() < p.count;
        struct abi_tile t = {0, 0};
        if (mine)
            t = plan->tiles[p.first + lane()];
        UNROLL
        for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++)
            code[u] |= warp_or(mine && t.col0 == 32 * u ? t.pattern + 1 : 0);
    }
}

/* Codes in one register instead of several: lane u has that of tile u. */
DEVICE u32 resident_codes_in_lanes(const u32 code[RESIDENT_TILES_AT_ONCE])
{
    u32 ret = 0;
    UNROLL
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++)
        ret = lane() == u ? code[u] : ret;
    return ret;
}

DEVICE void resident_codes_from_lanes(u32 code[RESIDENT_TILES_AT_ONCE], u32 lanes)
{
    UNROLL
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++)
        code[u] = bits_of(SHUFFLE_FROM(float_of(lanes), u));
}

/* The pattern's words of the lane's rows at each column tile; all bits where the tile is full. */
DEVICE void resident_words(u32 word[RESIDENT_TILES_AT_ONCE][2],
                           const u32 code[RESIDENT_TILES_AT_ONCE], const struct abi_plan *plan,
                           u32 row0)
{
    const u32 row = row0 % BLOCK_ROWS + resident_row();
    UNROLL
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++) {
        word[u][0] = word[u][1] = code[u] ? 0xffffffffu : 0;
        if (code[u] > 1) { /* the same for the whole warp */
            const u32 *at = plan->patterns + (u64)(code[u] - 2) * BLOCK_ROWS + row;
            word[u][0] = at[0];
            word[u][1] = at[8];
        }
    }
}

/* The lane's bits of column tile u, without rows and columns beyond the length. */
DEVICE void resident_direct_tile(struct resident_tile *t, u32 u, const u32 word[2],
                                 const struct resident_head *head, u32 row0)
{
    const u32 row = row0 + resident_row(), left = head->length - 32 * u;
    const u32 columns = head->length <= 32 * u ? 0 : left < 32 ? (1u << left) - 1 : 0xffffffffu;
    const u32 upper = row < head->length ? word[0] & columns : 0;
    const u32 lower = row + 8 < head->length ? word[1] & columns : 0;
    t->seen = (upper >> 2 * quad_lane() & 0x03030303u) |
              (lower >> 2 * quad_lane() & 0x03030303u) << 2;
    t->any = warp_or(t->seen);
    t->seen |= ANY(t->seen != 0x0f0f0f0fu) ? RESIDENT_HIDES : 0;
}

/* All column tiles of a warp tile, from its item's codes. Returns which of their halves have an entry
   (resident_lives). */
DEVICE u32 resident_direct(struct resident_tile t[RESIDENT_TILES_AT_ONCE],
                           const u32 code[RESIDENT_TILES_AT_ONCE], const struct abi_plan *plan,
                           const struct resident_head *head, u32 row0)
{
    u32 word[RESIDENT_TILES_AT_ONCE][2], lives = 0, hidden = 0;
    UNROLL
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++) {
        t[u].col0 = 32 * u;
        t[u].seen = t[u].any = 0x0f0f0f0fu;
        lives |= 3u << 2 * u;
        hidden |= code[u] ^ 1;
    }
    if (!hidden && head->length >= 32 * RESIDENT_TILES_AT_ONCE)
        return lives; /* nothing is hidden: row0 is one of the head's rows, as its item has tiles */
    resident_words(word, code, plan, row0);
    lives = 0;
    UNROLL
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++) {
        resident_direct_tile(&t[u], u, word[u], head, row0);
        lives |= resident_halves(&t[u]) << 2 * u;
    }
    return lives;
}

#endif
