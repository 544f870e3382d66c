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

/* Work of a global row beside its keys. */
static inline void row_count(struct effort *ret)
{
    ret->count[UNIT_ROW_ITEM]++;
}

/* Outputs that cost as much as one merged row: its sums are written and read again, and its operand is read twice.
   `far`: the sums wait in memory for the next launch. */
static inline double merge_outputs(bool far)
{
    return far ? 18 : 3;
}
