/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/lowering/effort.h"
#include <string.h>

/* Counts the loop over keys if the item has one. */
static void loop_count(struct effort *ret)
{
    ret->count[UNIT_LOOP] = ret->count[UNIT_FULL] + ret->count[UNIT_PARTIAL] > 0;
}

static uint32_t count_rows(const u32 bits[ABI_MAX_BLOCK_ROWS / 32])
{
    uint32_t rows = 0;
    for (uint32_t w = 0; w < ABI_MAX_BLOCK_ROWS / 32; w++)
        rows += (uint32_t)__builtin_popcount(bits[w]);
    return rows;
}

/* Counts the rows that the item merges, or parts of a cut row, and the partial rows that it stores for another launch. */
static void partial_count(const struct plan_pass *t, const struct abi_item *item,
                          struct effort *ret)
{
    const bool far = t->fragments;
    const uint32_t merged = count_rows(item->merge);
    merge_count(far, far && merged && item->partial_slots ? item->partial_slots : merged, ret);
    ret->count[UNIT_PARTIAL_ROW] += far && item->split ? count_rows(item->own) : 0;
}

struct effort item_effort(const struct plan_pass *t, const struct abi_item *item)
{
    struct effort e = {{0}};
    if (item->rows == 1 && item->step == 1)
        row_count(&e);
    else
        row_block_count(item->rows, &e);
    partial_count(t, item, &e);
    for (u32 k = item->piece; k < item->piece + item->pieces; k++)
        lowering_of(t->pieces[k].kind)->count(t, item, &t->pieces[k], &e);
    loop_count(&e);
    if (e.count[UNIT_LINE] > 0 && item_lines_mixed(t, item))
        e.count[UNIT_MIXED_ROW] = item->rows;
    else
        e.count[UNIT_MIXED] = 0;
    return e;
}

/* Work of a draft as this item, if the item before it has gathered the kept groups. */
static struct effort draft_effort(const struct draft *d, const struct plan_pass *like,
                                  const struct abi_item *item)
{
    struct abi_piece piece[ABI_KINDS + 1];
    struct abi_item items[2] = {{.piece = d->pieces, .pieces = 1}, *item};
    const struct plan_pass tables = {
        .items = items,
        .pieces = piece,
        .ranges = d->ranges,
        .tiles = d->tiles,
        .lines = d->lines,
        .gathers = d->gathers,
        .columns = d->columns,
        .patterns = d->words,
        .gathers_kept = d->n_kept ? UINT32_MAX : 0,
        .block_rows = like->block_rows,
        .fragments = like->fragments,
        .halves = like->halves,
        .kernels = like->kernels,
    };
    memcpy(piece, d->piece, d->pieces * sizeof *piece);
    piece[d->pieces] =
        (struct abi_piece){ABI_COLUMNS, (u32)(d->n_gathers - d->n_kept), d->n_kept, 0};
    items[1].piece = 0;
    items[1].pieces = d->pieces;
    items[1].cols = 0;
    for (uint32_t k = 0; k < d->pieces; k++)
        items[1].cols += piece[k].cols;
    return item_effort(&tables, &items[1]);
}

void draft_price(struct draft *d, const struct plan_pass *like, const struct abi_item *item,
                 const struct price *p)
{
    const struct effort e = draft_effort(d, like, item);
    d->cost = price_of(p, &e);
}

struct effort alone_effort(const struct lowering *l, struct row_block *s)
{
    struct effort e = {{0}};
    row_block_count(s->rows, &e);
    l->count_alone(s, &e);
    loop_count(&e);
    return e;
}
