/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of BLOCK_ROWS x 32: those without an active entry are skipped, full ones take no mask
   test, the others test a pattern of one word a row. Whatever no other lowering took ends here. */
#include "gen/lowering/fragments.h"
#include "gen/lowering/lowering.h"
#include "masks/base/memory.h"
#include <string.h>

static void count_alone(struct row_block *s, struct effort *ret)
{
    tile_count(s->fragments, s->halves, NULL, s->rows, row_block_solid_tiles(s), ret);
    for (uint32_t k = 0; k < s->n_touched; k++)
        tile_count(s->fragments, s->halves, row_block_tile(s, s->bits, s->touched[k]), s->rows,
                   1, ret);
}

static void add_full(struct row_block *s, struct draft *d)
{
    for (uint32_t k = 0; k < s->n_solid; k++) {
        if (!s->solid_open[k])
            continue;
        for (uint32_t c = s->solid[k].begin; c < s->solid[k].end; c += ABI_TILE_COLS)
            *MEMORY_PUSH(d->tiles, d->n_tiles, d->tiles_capacity) = (struct abi_tile){c, 0};
    }
}

static void add_pattern(struct row_block *s, uint32_t tile, struct draft *d)
{
    u32 index = (u32)(d->n_words / s->block_rows) + 1;
    *MEMORY_PUSH(d->tiles, d->n_tiles, d->tiles_capacity) =
        (struct abi_tile){tile * ABI_TILE_COLS, index};
    memcpy(draft_pattern(d, s->block_rows), row_block_tile(s, s->open, tile),
           s->block_rows * sizeof *d->words);
}

static void build(struct row_block *s, const struct price *p, struct draft *d)
{
    uint64_t first = d->n_tiles;
    (void)p;
    add_full(s, d);
    for (uint32_t k = 0; k < s->n_touched; k++) {
        if (!row_block_is_open(s, s->touched[k]))
            continue;
        add_pattern(s, s->touched[k], d);
        row_block_close(s, s->touched[k]);
    }
    if (d->n_tiles > first)
        draft_piece(d, ABI_TILES, first, d->n_tiles - first,
                    ABI_TILE_COLS * (d->n_tiles - first));
}

static bool decode(const struct plan_pass *t, uint32_t block_rows, const struct abi_item *item,
                   const struct abi_piece *piece, const struct visitor *v)
{
    if (piece->first > t->n_tiles || piece->count > t->n_tiles - piece->first)
        return false;
    for (uint32_t k = 0; k < piece->count; k++) {
        struct abi_tile tile = t->tiles[piece->first + k];
        if (tile.pattern > t->n_patterns || tile.col0 % ABI_TILE_COLS)
            return false;
        const u32 *word =
            tile.pattern ? t->patterns + (size_t)(tile.pattern - 1) * block_rows : NULL;
        for (uint32_t r = 0; r < block_rows; r++) {
            bool seen = r < item->rows && item_owns(item, r);
            u32 bits = word ? word[r] : seen ? ~(u32)0 : 0;
            if (bits && !v->word(v->context, r, tile.col0, bits))
                return false;
        }
    }
    return true;
}

static uint64_t columns(const struct plan_pass *t, const struct abi_piece *piece)
{
    (void)t;
    return (uint64_t)ABI_TILE_COLS * piece->count;
}

static uint32_t columns_inside(struct abi_tile tile, uint32_t n)
{
    return n - tile.col0 < ABI_TILE_COLS ? n - tile.col0 : ABI_TILE_COLS;
}

static uint64_t area(const struct plan_pass *t, const struct abi_item *item,
                     const struct abi_piece *piece, uint32_t n)
{
    uint64_t columns = 0;
    for (u32 k = piece->first; k < piece->first + piece->count; k++)
        columns += columns_inside(t->tiles[k], n);
    return columns * item_owned_rows(item);
}

static uint64_t executed(const struct plan_pass *t, const struct abi_item *item,
                         const struct abi_piece *piece, uint32_t n)
{
    uint64_t cells = 0;
    if (!t->fragments)
        return area(t, item, piece, n);
    for (u32 k = piece->first; k < piece->first + piece->count; k++)
        cells += fragment_cells(pass_pattern(t, t->tiles[k].pattern), item->rows,
                                columns_inside(t->tiles[k], n));
    return cells;
}

static void count(const struct plan_pass *t, const struct abi_item *item,
                  const struct abi_piece *piece, struct effort *ret)
{
    for (u32 k = piece->first; k < piece->first + piece->count; k++)
        tile_count(t->fragments, t->halves, pass_pattern(t, t->tiles[k].pattern), item->rows, 1,
                   ret);
}

static bool fits_item(uint32_t can, const struct abi_item *item)
{
    return !(can & CAN_PIECES) || item_is_row_block(can, item);
}

static void reason(const struct visits *v, double cells, struct text *out)
{
    text_add(out, "%s touch %.3g%%, %.3g%% active",
             v->entries < v->area ? "fragments" : "tiles", 100 * (double)v->entries / cells,
             100 * (double)v->active / cells);
}

static uint64_t full(const struct plan_pass *t, const struct abi_piece *piece)
{
    uint64_t ret = 0;
    for (u32 k = piece->first; k < piece->first + piece->count; k++)
        ret += !t->tiles[k].pattern;
    return ret;
}

static void print(const struct plan_pass *t, uint32_t block_rows, const struct abi_item *item,
                  const struct abi_piece *piece, struct text *out)
{
    (void)block_rows, (void)item;
    count_print(out, piece->count, "tile");
    text_add(out, ", %llu full (*), at", (unsigned long long)full(t, piece));
    for (uint32_t k = 0; k < piece->count && k < 12; k++) {
        struct abi_tile tile = t->tiles[piece->first + k];
        text_add(out, " %u%s", tile.col0, tile.pattern ? "" : "*");
    }
    text_add(out, piece->count > 12 ? " ...\n" : "\n");
}

const struct lowering lowering_tiles = {
    .name = "tiles",
    .part = "tile",
    .kind = ABI_TILES,
    .table = TABLE_TILES,
    .fits_item = fits_item,
    .area = area,
    .name_of_fewer = "fragments",
    .reason = reason,
    .told = 2,
    .full = full,
    .count_alone = count_alone,
    .build = build,
    .decode = decode,
    .columns = columns,
    .count = count,
    .executed = executed,
    .print = print,
};
