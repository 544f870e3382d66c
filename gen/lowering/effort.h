/* SPDX-License-Identifier: Apache-2.0 */
/* Work and price of an item, as a draft or in a plan: its own work, and what each lowering counts of its pieces. */
#pragma once
#include "gen/lowering/lowering.h"

/* Work of an item of these tables: plans are predicted from it. */
struct effort item_effort(const struct plan_pass *t, const struct abi_item *item);

/* Sets a draft's cost: the price of its work as this item of tables like `like`, which item_effort() counts. Pieces and
   columns of `item` are not read. */
void draft_price(struct draft *d, const struct plan_pass *like, const struct abi_item *item,
                 const struct price *p);

/* Work of the row block if one lowering visited all of it. */
struct effort alone_effort(const struct lowering *l, struct row_block *s);

/* Work of a row block of so many rows beside its pieces. */
static inline void row_block_count(uint32_t rows, struct effort *ret)
{
    ret->count[UNIT_ITEM]++;
    ret->count[UNIT_ITEM_ROW] += rows;
}

/* Work of a global row beside its keys. */
static inline void row_count(struct effort *ret)
{
    ret->count[UNIT_ROW_ITEM]++;
}

/* Adds the work of merging so many rows. `far`: their sums wait in memory for the next launch; else they are in a cache, and
   a row costs as much as three outputs: its sums are written and read again, and its operand is read twice. */
static inline void merge_count(bool far, double rows, struct effort *ret)
{
    enum { NEAR_OUTPUTS = 3 };
    ret->count[far ? UNIT_PARTIAL_ROW : UNIT_ITEM_ROW] += far ? rows : NEAR_OUTPUTS * rows;
}
