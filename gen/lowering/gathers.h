/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by scattered columns and residue classes: groups of up to 32 gathered columns. The functions are those of
   struct lowering. */
#pragma once
#include "gen/lowering/lowering.h"

/* Most columns that row blocks of a head share: what is kept of them stays in a core's cache. */
enum { COLUMNS_SHARED = 20 * ABI_TILE_COLS };

/* Entries that a group's products come to. */
double gathers_entries(uint32_t rows, uint32_t count);

/* Seconds of one column in a whole group, for the choice of entries. */
double gathered_column_price(const struct price *p, uint32_t rows);

bool gathers_decode(const struct plan_pass *t, uint32_t block_rows, const struct abi_item *item,
                    const struct abi_piece *piece, const struct visitor *v);
uint64_t gathers_columns(const struct plan_pass *t, const struct abi_piece *piece);
uint64_t gathers_executed(const struct plan_pass *t, const struct abi_item *item,
                          const struct abi_piece *piece, uint32_t n);
uint64_t gathers_active(const struct plan_pass *t, uint32_t block_rows,
                        const struct abi_item *item, const struct abi_piece *piece);
void gathers_count(const struct plan_pass *t, const struct abi_item *item,
                   const struct abi_piece *piece, struct effort *ret);
void gathers_print(const struct plan_pass *t, uint32_t block_rows, const struct abi_item *item,
                   const struct abi_piece *piece, struct text *out);
