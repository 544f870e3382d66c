/* SPDX-License-Identifier: Apache-2.0 */
/* The columns that an item visits, tile by tile. Pieces may share a tile: the edge of a range, a pattern and a line then make
   one pattern. A tile whose rows all see the same columns needs none. */
#include "gen/steps/internal.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

enum tile_state { TILE_UNTOUCHED, TILE_BITS, TILE_FULL };

static void touch(struct step_builder *b, u32 tile, enum tile_state state)
{
    if (b->state[tile] == TILE_UNTOUCHED)
        b->touched[b->n_touched++] = tile;
    if (b->state[tile] < state)
        b->state[tile] = (uint8_t)state;
}

static bool owns(const struct abi_item *item, u32 r)
{
    return item->own[r / 32] >> (r % 32) & 1;
}

/* Columns `bits` of the tile, for the item's own rows. */
static void add_columns(struct step_builder *b, const struct abi_item *item, u32 tile, u32 bits)
{
    touch(b, tile, bits == ~(u32)0 ? TILE_FULL : TILE_BITS);
    for (u32 r = 0; r < item->rows && bits != ~(u32)0; r++)
        b->words[(size_t)tile * STEP_ROWS + r] |= owns(item, r) ? bits : 0;
}

static void add_range(struct step_builder *b, const struct abi_item *item,
                      struct abi_range range)
{
    for (u32 col = range.begin; col < range.end;) {
        const u32 tile = col / ABI_TILE_COLS, first = col % ABI_TILE_COLS;
        const u32 left = range.end - tile * ABI_TILE_COLS;
        const u32 end = left < ABI_TILE_COLS ? left : ABI_TILE_COLS;
        add_columns(b, item, tile, ~(u32)0 >> (ABI_TILE_COLS - end) & ~(u32)0 << first);
        col = (tile + 1) * ABI_TILE_COLS;
    }
}

static void add_tile(struct step_builder *b, const struct abi_item *item, struct abi_tile tile)
{
    const u32 at = tile.col0 / ABI_TILE_COLS;
    const u32 *word = pass_pattern(b->source->pass, tile.pattern);
    if (!word) {
        add_columns(b, item, at, ~(u32)0);
        return;
    }
    touch(b, at, TILE_BITS);
    for (u32 r = 0; r < STEP_ROWS; r++)
        b->words[(size_t)at * STEP_ROWS + r] |= word[r];
}

static void add_line(struct step_builder *b, const struct abi_line *line)
{
    for (u32 r = line->row_begin; r < line->row_end; r++) {
        const u32 column = (u32)(line->col0 + (i32)(line->step * r));
        touch(b, column / ABI_TILE_COLS, TILE_BITS);
        b->words[(size_t)(column / ABI_TILE_COLS) * STEP_ROWS + r] |= (u32)1
                                                                      << column % ABI_TILE_COLS;
    }
}

static bool in_one_tile(const struct plan_pass *t, const struct abi_gather *g)
{
    const u32 *columns = t->columns + g->first;
    for (u32 k = 1; k < g->count; k++)
        if (columns[k] / ABI_TILE_COLS != columns[0] / ABI_TILE_COLS)
            return false;
    return true;
}

/* Gathered columns of one tile as that tile: it comes in one box, where gathered columns take a box each, and so do those
   that a slot lacks. */
static void add_near_columns(struct step_builder *b, const struct abi_item *item,
                             const struct abi_gather *g)
{
    const struct plan_pass *t = b->source->pass;
    const u32 *columns = t->columns + g->first, *word = pass_pattern(t, g->pattern);
    const u32 tile = columns[0] / ABI_TILE_COLS;
    touch(b, tile, TILE_BITS);
    for (u32 r = 0; r < item->rows; r++) {
        const u32 sees = word ? word[r] : owns(item, r) ? ~(u32)0 : 0;
        for (u32 k = 0; k < g->count; k++)
            b->words[(size_t)tile * STEP_ROWS + r] |= (sees >> k & 1)
                                                      << columns[k] % ABI_TILE_COLS;
    }
}

static void add_piece(struct step_builder *b, const struct abi_item *item,
                      const struct abi_piece *piece, struct visited *ret)
{
    const struct plan_pass *t = b->source->pass;
    for (u32 k = piece->first; k < piece->first + piece->count; k++) {
        if (piece->kind == ABI_TILES)
            add_tile(b, item, t->tiles[k]);
        else if (piece->kind == ABI_DIAGONAL)
            add_line(b, &t->lines[k]);
        else if (piece->kind == ABI_COLUMNS && in_one_tile(t, &t->gathers[k]))
            add_near_columns(b, item, &t->gathers[k]);
        else if (piece->kind == ABI_COLUMNS)
            *MEMORY_PUSH(ret->gathers, ret->n_gathers, ret->gathers_capacity) = k;
        else
            add_range(b, item, t->ranges[k]);
    }
}

/* The tile's words as a pattern; 0 if all rows that the item owns have the same word. Sets the words to zero afterwards. */
static struct visited_tile take_words(struct step_builder *b, const struct abi_item *item,
                                      u32 tile)
{
    u32 *word = b->words + (size_t)tile * STEP_ROWS, same = ~(u32)0, any = 0;
    for (u32 r = 0; r < item->rows; r++) {
        same &= owns(item, r) ? word[r] : ~(u32)0;
        any |= word[r];
    }
    const u32 pattern =
        same == any ? 0 : pattern_intern(b->source->pass, &b->index, word, STEP_ROWS);
    memset(word, 0, STEP_ROWS * sizeof *word);
    return (struct visited_tile){tile, any, pattern};
}

static int ascending(const void *x, const void *y)
{
    const u32 a = *(const u32 *)x, b = *(const u32 *)y;
    return a < b ? -1 : a > b;
}

static bool is_sorted(const struct step_builder *b)
{
    for (uint32_t k = 1; k < b->n_touched; k++)
        if (b->touched[k] < b->touched[k - 1])
            return false;
    return true;
}

void visited_fill(struct step_builder *b, const struct abi_item *item, struct visited *ret)
{
    ret->n_tiles = ret->n_gathers = 0;
    for (u32 k = item->piece; k < item->piece + item->pieces; k++)
        add_piece(b, item, &b->source->pass->pieces[k], ret);
    if (!is_sorted(b))
        qsort(b->touched, b->n_touched, sizeof *b->touched, ascending);
    for (uint32_t k = 0; k < b->n_touched; k++) {
        const u32 tile = b->touched[k];
        *MEMORY_PUSH(ret->tiles, ret->n_tiles, ret->tiles_capacity) =
            b->state[tile] == TILE_FULL ? (struct visited_tile){tile, ~(u32)0, 0}
                                        : take_words(b, item, tile);
        b->state[tile] = TILE_UNTOUCHED;
    }
    b->n_touched = 0;
}
