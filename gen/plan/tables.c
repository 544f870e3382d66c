/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/plan/tables.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

static void add_piece(struct plan_pass *t, struct abi_item *item, struct abi_piece piece)
{
    *MEMORY_PUSH(t->pieces, t->n_pieces, t->pieces_capacity) = piece;
    item->pieces++;
    item->cols += piece.cols;
    t->uses |= (u32)1 << piece.kind;
}

static void add_item(struct plan_pass *t, struct abi_item item)
{
    t->uses |= item.split ? (u32)ABI_SPLIT : 0;
    t->partial_slots = item.partial_slot + item.partial_slots > t->partial_slots
                           ? item.partial_slot + item.partial_slots
                           : t->partial_slots;
    if (item.cols > t->max_cols)
        t->max_cols = item.cols;
    *MEMORY_PUSH(t->items, t->n_items, t->items_capacity) = item;
}

static u32 intern_of_draft(struct plan_pass *t, struct pattern_index *index,
                           uint32_t block_rows, const struct draft *d, u32 pattern)
{
    if (!pattern)
        return 0;
    return pattern_intern(t, index, d->words + (size_t)(pattern - 1) * block_rows, block_rows);
}

static void add_gather(struct plan_pass *t, struct pattern_index *index, uint32_t block_rows,
                       const struct draft *d, struct abi_gather gather)
{
    u32 from = gather.first;
    gather.first = (u32)t->n_columns;
    gather.pattern = intern_of_draft(t, index, block_rows, d, gather.pattern);
    for (u32 k = 0; k < gather.count; k++)
        *MEMORY_PUSH(t->columns, t->n_columns, t->columns_capacity) = d->columns[from + k];
    *MEMORY_PUSH(t->gathers, t->n_gathers, t->gathers_capacity) = gather;
}

/* Copies a piece's rows of the draft's tables; returns where they begin in the plan's. */
static u32 add_contents(struct plan_pass *t, struct pattern_index *index, uint32_t block_rows,
                        const struct draft *d, const struct abi_piece *piece)
{
    enum lowering_table table = lowering_of(piece->kind)->table;
    u32 end = piece->first + piece->count;
    if (table == TABLE_RANGES) {
        for (u32 k = piece->first; k < end; k++)
            *MEMORY_PUSH(t->ranges, t->n_ranges, t->ranges_capacity) = d->ranges[k];
        return (u32)t->n_ranges - piece->count;
    }
    if (table == TABLE_LINES) {
        for (u32 k = piece->first; k < end; k++)
            *MEMORY_PUSH(t->lines, t->n_lines, t->lines_capacity) = d->lines[k];
        return (u32)t->n_lines - piece->count;
    }
    if (table == TABLE_GATHERS) {
        for (u32 k = piece->first; k < end; k++)
            add_gather(t, index, block_rows, d, d->gathers[k]);
        return (u32)t->n_gathers - piece->count;
    }
    for (u32 k = piece->first; k < end; k++) {
        struct abi_tile tile = d->tiles[k];
        tile.pattern = intern_of_draft(t, index, block_rows, d, tile.pattern);
        *MEMORY_PUSH(t->tiles, t->n_tiles, t->tiles_capacity) = tile;
    }
    return (u32)t->n_tiles - piece->count;
}

void tables_add_item(struct plan_pass *t, struct pattern_index *index, uint32_t block_rows,
                     struct abi_item item, const struct draft *d)
{
    item.piece = (u32)t->n_pieces;
    for (uint32_t k = 0; k < d->pieces; k++) {
        struct abi_piece piece = d->piece[k];
        piece.first = add_contents(t, index, block_rows, d, &d->piece[k]);
        add_piece(t, &item, piece);
    }
    add_item(t, item);
}

void tables_add_row_block(struct plan_pass *t, struct pattern_index *index,
                          const struct row_block *s, const struct draft *d)
{
    struct abi_item item = {.row0 = s->row0, .rows = s->rows, .step = 1};
    memcpy(item.own, s->own, sizeof item.own);
    tables_add_item(t, index, s->block_rows, item, d);
}

void tables_copy_item(struct plan_pass *t, struct pattern_index *index,
                      const struct plan_pass *from, const struct abi_item *item)
{
    struct draft d = {.ranges = from->ranges,
                      .tiles = from->tiles,
                      .lines = from->lines,
                      .gathers = from->gathers,
                      .columns = from->columns,
                      .words = from->patterns,
                      .pieces = item->pieces};
    struct abi_item copy = *item;
    memcpy(d.piece, from->pieces + item->piece, item->pieces * sizeof *d.piece);
    copy.pieces = copy.cols = 0;
    tables_add_item(t, index, from->block_rows, copy, &d);
}

void tables_add_row(struct plan_pass *t, const struct pattern *p, uint32_t row)
{
    struct abi_item item = {
        .row0 = row,
        .rows = 1,
        .step = 1,
        .own = {1},
        .piece = (u32)t->n_pieces,
    };
    u32 first = (u32)t->n_ranges;
    for (uint64_t k = p->row[row]; k < p->row[row + 1]; k++)
        *MEMORY_PUSH(t->ranges, t->n_ranges, t->ranges_capacity) =
            (struct abi_range){p->run[k].begin, p->run[k].end};
    u32 count = (u32)(t->n_ranges - first);
    if (count)
        add_piece(t, &item,
                  (struct abi_piece){ABI_ROWS, first, count, pattern_row_active(p, row)});
    add_item(t, item);
}

/* Keys begin .. end - 1 of the row, counted from its first, as ranges. */
static void add_part(struct plan_pass *t, const struct pattern *p, struct abi_item item,
                     uint32_t begin, uint32_t end)
{
    uint32_t row = item.row0, at = 0;
    u32 first = (u32)t->n_ranges;
    for (uint64_t k = p->row[row]; k < p->row[row + 1] && at < end; k++) {
        struct run run = p->run[k];
        uint32_t length = run.end - run.begin, from = begin > at ? begin - at : 0;
        uint32_t to = end - at < length ? end - at : length;
        if (from < to)
            *MEMORY_PUSH(t->ranges, t->n_ranges, t->ranges_capacity) =
                (struct abi_range){run.begin + from, run.begin + to};
        at += length;
    }
    item.piece = (u32)t->n_pieces;
    add_piece(t, &item,
              (struct abi_piece){ABI_ROWS, first, (u32)t->n_ranges - first, end - begin});
    add_item(t, item);
}

void tables_add_parts(struct plan_pass *t, const struct pattern *p, uint32_t row,
                      uint32_t parts, uint32_t partial_slot)
{
    uint32_t keys = pattern_row_active(p, row);
    struct abi_item item = {.row0 = row, .rows = 1, .step = 1, .own = {1}, .split = 1};
    item.partial_slots = 1;
    for (uint32_t k = 0; k < parts; k++) {
        item.partial_slot = partial_slot + k;
        add_part(t, p, item, (uint32_t)((uint64_t)keys * k / parts),
                 (uint32_t)((uint64_t)keys * (k + 1) / parts));
    }
    add_item(t, (struct abi_item){.row0 = row,
                                  .rows = 1,
                                  .step = 1,
                                  .own = {1},
                                  .merge = {1},
                                  .partial_slot = partial_slot,
                                  .partial_slots = parts,
                                  .piece = (u32)t->n_pieces});
}

void tables_splits_first(struct plan_pass *t, uint64_t first)
{
    uint64_t count = t->n_items - first, at = first;
    if (!(t->uses & ABI_SPLIT))
        return;
    struct abi_item *items = memory_copy(t->items + first, count * sizeof *items);
    for (u32 split = 2; split--;)
        for (uint64_t k = 0; k < count; k++)
            if (items[k].split == split)
                t->items[at++] = items[k];
    free(items);
}

void tables_finish(struct plan_pass *t)
{
    free(t->items);
    free(t->pieces);
    free(t->ranges);
    free(t->tiles);
    free(t->lines);
    free(t->gathers);
    free(t->columns);
    free(t->patterns);
    free(t->work);
    free(t->heads);
    free(t->item_first);
    free(t->layer_work);
    free(t->summary);
    free(t->alone);
}
