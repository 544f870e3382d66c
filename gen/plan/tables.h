/* SPDX-License-Identifier: Apache-2.0 */
/* The growing tables of one pass. */
#pragma once
#include "gen/lowering/lowering.h"
#include "gen/plan/plan.h"
#include "gen/tables/pattern_index.h"

/* Writes a draft (pieces of the row block's owned rows) as one item. */
void tables_add_row_block(struct plan_pass *t, struct pattern_index *index,
                          const struct row_block *s, const struct draft *d);
/* The same for any item; its piece, pieces and cols are set here, its cost is not. */
void tables_add_item(struct plan_pass *t, struct pattern_index *index, uint32_t block_rows,
                     struct abi_item item, const struct draft *d);
/* An item of other tables, of row blocks as high. */
void tables_copy_item(struct plan_pass *t, struct pattern_index *index,
                      const struct plan_pass *from, const struct abi_item *item);
/* A global row. */
void tables_add_row(struct plan_pass *t, const struct pattern *p, uint32_t row);
/* A global row as `parts` split items, in the partial slots from `partial_slot` on, and one that merges them. */
void tables_add_parts(struct plan_pass *t, const struct pattern *p, uint32_t row,
                      uint32_t parts, uint32_t partial_slot);
/* Reorders the items from `first` on: split ones first, otherwise in their order. */
void tables_splits_first(struct plan_pass *t, uint64_t first);
void tables_finish(struct plan_pass *t); /* frees everything; a zeroed one is fine */
