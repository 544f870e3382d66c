/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of the plan become column tiles, tiles become blocks: see row_block.h. */
#ifndef MASKC_CPU_COLUMN_TILE_H
#define MASKC_CPU_COLUMN_TILE_H
#include "cpu/row_block.h"

static u32 pattern_live(const u32 *pattern)
{
    u32 live = 0;
    for (u32 k = 0; k < BLOCKS; k++) {
        u32 any = 0;
        for (u32 r = 0; r < MICRO_ROWS; r++)
            any |= pattern[k * MICRO_ROWS + r];
        live |= (u32)(any != 0) << k;
    }
    return live;
}

/* A gather's columns below the length; they come first. */
static void tile_of_gather(const struct row_block *t, const struct abi_gather *gather,
                           struct column_tile *tile)
{
    const u32 *column = t->plan->columns + gather->first;
    tile->kind = TILE_GATHERED;
    tile->first = gather->first;
    tile->width = gather->count;
    while (tile->width && column[tile->width - 1] >= t->s.column_length)
        tile->width--;
    tile->pattern = gather->pattern;
    if (tile->pattern)
        tile->live &= pattern_live(t->plan->patterns + (u64)(tile->pattern - 1) * BLOCK_ROWS);
}

/* Bit k: row r sees column k of a gathered tile. */
INLINE u32 columns_seen(const struct row_block *t, const struct column_tile *tile, u32 r)
{
    u32 all = tile->width < TILE ? (1u << tile->width) - 1 : 0xffffffff;
    if (tile->pattern)
        all &= t->plan->patterns[(u64)(tile->pattern - 1) * BLOCK_ROWS + r];
    return row_live(t, r) ? all : 0;
}

/* True where all rows have the same columns; else the tile is a column list. */
INLINE int tile_is_panel(const struct column_tile *tile)
{
    return tile->kind == TILE_PANEL || tile->kind == TILE_GATHERED;
}

INLINE u32 tile_column(const struct row_block *t, const struct column_tile *tile, u32 c)
{
    return tile->kind == TILE_GATHERED ? t->plan->columns[tile->first + c] : tile->first + c;
}

/* Blocks of rows with an entry in half `h` of a plan's tile. With a matrix unit a column tile may
   begin in the middle of a plan's tile. If that tile's first half is empty, the column tile
   consists of its second half and, if a partial tile follows directly, of that one's first half. */
static u32 half_live(const struct abi_plan *p, struct abi_tile source, u32 h)
{
    if (!source.pattern)
        return BLOCKS_ALL;
    const u32 *pattern = p->patterns + (u64)(source.pattern - 1) * BLOCK_ROWS;
    u32 live = 0;
    for (u32 k = 0; k < BLOCKS; k++) {
        uvec any = {0};
        for (u32 r = 0; r < MICRO_ROWS; r += LANES)
            any |= (uvec)load((const float *)(const void *)(pattern + k * MICRO_ROWS + r));
        u32 words = 0;
        for (u32 r = 0; r < LANES; r++)
            words |= any[r];
        live |= (u32)((words >> (TILE / 2 * h) & 0xffff) != 0) << k;
    }
    return live;
}

/* The column tile from the plan's tile `entry` on, of which the first half may be done (`offset`). */
static void tile_of_halves(struct row_block *t, const struct abi_piece *piece,
                           struct column_tile *tile)
{
    const struct abi_tile *source = t->plan->tiles + piece->first + t->entry;
    u32 first = t->offset ? 0 : half_live(t->plan, source[0], 0);
    u32 second = half_live(t->plan, source[0], 1);
    u32 live = first | second;
    tile->first = source->col0;
    tile->pattern = source->pattern;
    t->entry++;
    t->offset = 0;
    if (!first) {
        tile->first += TILE / 2;
        tile->shift = TILE / 2;
        if (second && t->entry < piece->count && source[1].pattern &&
            source[1].col0 == source[0].col0 + TILE) {
            tile->next = source[1].pattern;
            t->offset = TILE / 2;
            live |= half_live(t->plan, source[1], 0);
        }
    }
    tile->live &= live;
    u32 left = tile->first < t->s.column_length ? t->s.column_length - tile->first : 0;
    tile->width = left < TILE ? left : TILE;
}

/* The next column tile of `piece`. Its width is 0 where nothing of it is below the length. */
static struct column_tile tile_next(struct row_block *t, const struct abi_piece *piece,
                                    u32 capacity)
{
    const struct abi_plan *p = t->plan;
    struct column_tile tile = {.live = t->live_blocks, .columns = 0xffffffff};
    if (MATRIX && piece->kind == ABI_TILES) {
        tile_of_halves(t, piece, &tile);
    } else if (piece->kind == ABI_TILES) {
        struct abi_tile source = p->tiles[piece->first + t->entry++];
        u32 left = source.col0 < t->s.column_length ? t->s.column_length - source.col0 : 0;
        tile.first = source.col0;
        tile.width = left < TILE ? left : TILE;
        tile.pattern = source.pattern;
        if (tile.pattern)
            tile.live &= pattern_live(p->patterns + (u64)(tile.pattern - 1) * BLOCK_ROWS);
    } else if (piece_gathers(piece->kind)) {
        tile_of_gather(t, &p->gathers[piece->first + t->entry++], &tile);
    } else if (piece->kind == ABI_DIAGONAL) {
        u32 left = piece->count - t->entry;
        tile.kind = TILE_DIAGONAL;
        tile.first = piece->first + t->entry;
        tile.width = left < capacity ? left : capacity;
        t->entry += tile.width;
    } else {
        struct abi_range range = p->ranges[piece->first + t->entry];
        u32 end = range.end < t->s.column_length ? range.end : t->s.column_length;
        u32 most = piece->kind == ABI_ROWS ? capacity : TILE;
        tile.kind = piece->kind == ABI_ROWS ? TILE_RANGE : TILE_PANEL;
        tile.first = range.begin + t->offset;
        u32 left = tile.first < end ? end - tile.first : 0;
        /* matrix units: see MATRIX_COLS */
        u32 skip = MATRIX && left && tile.kind == TILE_PANEL ? tile.first % MATRIX_COLS : 0;
        tile.first -= skip;
        left += skip;
        tile.columns <<= skip;
        tile.width = left < most ? left : most;
        t->offset += tile.width - skip;
        if (tile.width == left) {
            t->offset = 0;
            t->entry++;
        }
    }
    if (MATRIX && tile.width < TILE)
        tile.columns &= (1u << tile.width) - 1;
    return tile;
}

/* The next block of column tiles. Returns 0 where no pieces are left and the block is empty. */
static int block_next(struct row_block *t, struct block *b)
{
    b->tiles = b->cols = b->lists = 0;
    while (t->piece < t->item->pieces && b->cols < CHUNK_COLS) {
        const struct abi_piece *piece = &t->plan->pieces[t->item->piece + t->piece];
        if (t->entry >= piece->count) {
            t->piece++;
            t->entry = 0;
            continue;
        }
        struct column_tile tile = tile_next(t, piece, CHUNK_COLS - b->cols);
        if (!tile.width || (tile_is_panel(&tile) && !tile.live))
            continue;
        tile.gap = MATRIX && tile_is_panel(&tile) ? -b->cols % TILE : 0;
        tile.at = b->cols + tile.gap;
        b->cols = tile.at + (MATRIX && tile_is_panel(&tile) ? TILE : tile.width);
        b->lists |= !tile_is_panel(&tile);
        b->tile[b->tiles++] = tile;
    }
    return b->tiles != 0;
}

#endif
