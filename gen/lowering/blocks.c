/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of keys that every owned row sees: no mask test and no tile list. Takes a row block whose
   rows are all alike as a whole, at any alignment (BlockBERT, local attention); of other row blocks it
   takes the long runs of full tiles (bands, causal). Never dearer than tiles of the same entries;
   narrow ranges go to gathers or lines down columns where cheaper. */
#include "gen/lowering/fragments.h"
#include "gen/lowering/gathers.h"
#include "masks/base/memory.h"

extern const struct lowering lowering_blocks;

enum { LONG_RANGE = 4 * ABI_TILE_COLS }; /* below this, full tiles say the same as shortly */

static bool is_long(struct abi_range range)
{
    return range.end - range.begin >= LONG_RANGE;
}

static bool applies(const struct row_block *s, const struct price *p)
{
    (void)p;
    if (s->equal && s->n_common)
        return true;
    for (uint32_t k = 0; k < s->n_solid; k++)
        if (is_long(s->solid[k]))
            return true;
    return false;
}

/* A range against the same columns gathered, and walked one by one. */
static bool pays(const struct row_block *s, const struct price *p, struct abi_range range)
{
    const uint32_t columns = range.end - range.begin;
    const double here = row_block_range_price(s, p, range),
                 gathered = columns * gathered_column_price(p, s->rows);
    if (s->fragments || (p->gather > 0 && here > gathered))
        return here <= gathered;
    return here < price_lines(p, s->rows, (double)columns * s->owned, columns, columns);
}

static void count_alone(struct row_block *s, struct effort *ret)
{
    if (!s->equal)
        lowering_tiles.count_alone(s, ret);
    for (uint32_t k = 0; s->equal && k < s->n_common; k++)
        range_count(s->fragments, s->common[k], s->rows, ret);
}

static void close_bits(struct row_block *s, uint32_t tile, u32 word)
{
    u32 *open = row_block_tile(s, s->open, tile);
    for (uint32_t r = 0; r < s->rows; r++)
        open[r] &= ~word;
}

/* The ends of a range that are not whole tiles: the tiles between them are solid. */
static void close_ends(struct row_block *s, struct abi_range range)
{
    uint32_t first = range.begin / 32, last = (range.end - 1) / 32;
    u32 from = ~(u32)0 << (range.begin % 32), until = ~(u32)0 >> (31 - (range.end - 1) % 32);
    if (first == last) {
        close_bits(s, first, from & until);
        return;
    }
    close_bits(s, first, from);
    close_bits(s, last, until);
}

static void add(struct draft *d, struct abi_range range)
{
    *MEMORY_PUSH(d->ranges, d->n_ranges, d->ranges_capacity) = range;
}

static void close_solid(struct row_block *s, struct abi_range range)
{
    for (uint32_t k = 0; k < s->n_solid; k++)
        if (range.begin <= s->solid[k].begin && s->solid[k].end <= range.end)
            s->solid_open[k] = 0;
}

static void take_equal(struct row_block *s, const struct price *p, struct draft *d)
{
    for (uint32_t k = 0; k < s->n_common; k++) {
        if (!pays(s, p, s->common[k]))
            continue;
        add(d, s->common[k]);
        close_ends(s, s->common[k]);
        close_solid(s, s->common[k]);
    }
}

static void take_long(struct row_block *s, struct draft *d)
{
    for (uint32_t k = 0; k < s->n_solid; k++) {
        if (!is_long(s->solid[k]))
            continue;
        add(d, s->solid[k]);
        s->solid_open[k] = 0;
    }
}

/* Ranges that do not pay stay open, and may share tiles with ranges that do: then plain tiles can be
   the cheaper way for all of them. */
static bool equal_pays(const struct row_block *s, const struct price *p)
{
    double ranges = 0, tiles = row_block_solid_tiles(s) * tile_price(s, p, NULL);
    uint32_t left = 0, last = UINT32_MAX;
    for (uint32_t k = 0; k < s->n_common; k++) {
        struct abi_range range = s->common[k];
        if (pays(s, p, range)) {
            ranges += row_block_range_price(s, p, range);
            continue;
        }
        left += (range.end - 1) / 32 - range.begin / 32 + (range.begin / 32 != last);
        last = (range.end - 1) / 32;
    }
    for (uint32_t k = 0; k < s->n_touched; k++)
        tiles += tile_price(s, p, row_block_tile(s, s->bits, s->touched[k]));
    return ranges + left * whole_tile_price(s, p) <=
           tiles * (1 + 1e-9); /* ranges are the shorter plan */
}

static void build(struct row_block *s, const struct price *p, struct draft *d)
{
    uint64_t first = d->n_ranges;
    uint64_t cols = 0;
    if (s->equal && equal_pays(s, p))
        take_equal(s, p, d);
    else
        take_long(s, d);
    for (uint64_t k = first; k < d->n_ranges; k++)
        cols += d->ranges[k].end - d->ranges[k].begin;
    if (d->n_ranges > first)
        draft_piece(d, ABI_BLOCKS, first, d->n_ranges - first, cols);
}

static bool decode(const struct plan_pass *t, uint32_t block_rows, const struct abi_item *item,
                   const struct abi_piece *piece, const struct visitor *v)
{
    (void)block_rows;
    if (piece->first > t->n_ranges || piece->count > t->n_ranges - piece->first)
        return false;
    for (uint32_t k = 0; k < piece->count; k++) {
        struct abi_range range = t->ranges[piece->first + k];
        for (uint32_t r = 0; r < item->rows; r++)
            if (item_owns(item, r) && !v->range(v->context, r, range.begin, range.end))
                return false;
    }
    return true;
}

uint64_t ranges_columns(const struct plan_pass *t, const struct abi_piece *piece)
{
    uint64_t sum = 0;
    for (u32 k = piece->first; k < piece->first + piece->count; k++)
        sum += t->ranges[k].end - t->ranges[k].begin;
    return sum;
}

uint64_t ranges_executed(const struct plan_pass *t, const struct abi_item *item,
                         const struct abi_piece *piece, uint32_t n)
{
    (void)n;
    return ranges_columns(t, piece) * item_owned_rows(item);
}

static void count(const struct plan_pass *t, const struct abi_item *item,
                  const struct abi_piece *piece, struct effort *ret)
{
    for (u32 k = piece->first; k < piece->first + piece->count; k++)
        range_count(t->fragments, t->ranges[k], item->rows, ret);
}

static void print(const struct plan_pass *t, uint32_t block_rows, const struct abi_item *item,
                  const struct abi_piece *piece, struct text *out)
{
    (void)block_rows, (void)item;
    count_print(out, piece->count, "range");
    text_add(out, ", ");
    count_print(out, piece->cols, "column");
    text_add(out, ":");
    for (uint32_t k = 0; k < piece->count && k < 8; k++)
        text_add(out, " %u..%u", t->ranges[piece->first + k].begin,
                 t->ranges[piece->first + k].end - 1);
    text_add(out, piece->count > 8 ? " ...\n" : "\n");
}

static bool fits_item(uint32_t can, const struct abi_item *item)
{
    return item->step > 1 ? can & CAN_JOIN_ROWS : item_is_row_block(can, item);
}

static void reason(const struct visits *v, double cells, struct text *out)
{
    text_add(out, "ranges that whole row blocks see: %.3g%%", 100 * (double)v->entries / cells);
}

const struct lowering lowering_blocks = {
    .name = "blocks",
    .part = "block range",
    .kind = ABI_BLOCKS,
    .table = TABLE_RANGES,
    .fits_item = fits_item,
    .reason = reason,
    .told = 1,
    .applies = applies,
    .count_alone = count_alone,
    .build = build,
    .decode = decode,
    .columns = ranges_columns,
    .count = count,
    .executed = ranges_executed,
    .print = print,
};
