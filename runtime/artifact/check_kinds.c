/* SPDX-License-Identifier: Apache-2.0 */
/* A row for each kind of piece: the table that it indexes, its score columns, the items that may have it. The loader goes
   by this table alone; it does not know the lowerings. */
#include "runtime/artifact/check.h"

static uint64_t ranges(const struct plan_pass *p)
{
    return p->n_ranges;
}

static uint64_t tiles(const struct plan_pass *p)
{
    return p->n_tiles;
}

static uint64_t lines(const struct plan_pass *p)
{
    return p->n_lines;
}

static uint64_t gathers(const struct plan_pass *p)
{
    return p->n_gathers;
}

static uint64_t range_cols(const struct plan_pass *p, struct abi_piece piece)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < piece.count; k++)
        sum += p->ranges[piece.first + k].end - p->ranges[piece.first + k].begin;
    return sum;
}

static uint64_t tile_cols(const struct plan_pass *p, struct abi_piece piece)
{
    (void)p;
    return (uint64_t)ABI_TILE_COLS * piece.count;
}

static uint64_t line_cols(const struct plan_pass *p, struct abi_piece piece)
{
    (void)p;
    return piece.count;
}

static uint64_t gather_cols(const struct plan_pass *p, struct abi_piece piece)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < piece.count; k++)
        sum += p->gathers[piece.first + k].count;
    return sum;
}

/* Rows a stride apart see the same keys: neither partial sums nor merges. */
static bool joins_rows(const struct plan_pass *p, struct abi_piece piece,
                       const struct abi_item *item)
{
    (void)p, (void)piece;
    return item->step == 1 || (!item->split && !item_merges(item));
}

static bool is_row_block(const struct plan_pass *p, struct abi_piece piece,
                         const struct abi_item *item)
{
    (void)p, (void)piece;
    return item->step == 1;
}

static bool has_rows_of_lines(const struct plan_pass *p, struct abi_piece piece,
                              const struct abi_item *item)
{
    for (uint32_t k = 0; k < piece.count; k++)
        if (p->lines[piece.first + k].row_end > item->rows)
            return false;
    return item->step == 1;
}

static bool is_one_row(const struct plan_pass *p, struct abi_piece piece,
                       const struct abi_item *item)
{
    (void)p, (void)piece;
    return item->step == 1 && item->rows == 1;
}

static bool is_class(const struct plan_pass *p, struct abi_piece piece,
                     const struct abi_item *item)
{
    (void)p, (void)piece;
    return item->step > 1;
}

const struct check_kind check_kinds[ABI_KINDS] = {
    [ABI_BLOCKS] = {ranges, range_cols, joins_rows},
    [ABI_TILES] = {tiles, tile_cols, is_row_block},
    [ABI_DIAGONAL] = {lines, line_cols, has_rows_of_lines},
    [ABI_ROWS] = {ranges, range_cols, is_one_row},
    [ABI_COLUMNS] = {gathers, gather_cols, is_row_block},
    [ABI_RESIDUE] = {gathers, gather_cols, is_class},
};
