/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments: a matrix unit of CUDA computes a tile in fragments of 16 x 8 and skips fragments without an active entry.
   The columns of every piece are first copied to shared memory, 32 at a time. */
#pragma once
#include "gen/cost/price.h"
#include "gen/lowering/row_block.h"

enum { FRAGMENT_ROWS = 16, FRAGMENT_COLS = 8 };

/* Entries in the visited fragments of a tile with `rows` row words; null means a full tile. Whole fragments count,
   including rows and columns past the edge. */
double fragment_entries(const u32 *word, uint32_t rows);

/* The same, without rows past `rows` and columns past `columns`. */
uint64_t fragment_cells(const u32 *word, uint32_t rows, uint32_t columns);

/* Entries visited in a tile if an empty half of 16 columns is skipped, as on AMX: half of one tile and the neighbouring
   half of the next form a panel. */
double halves_entries(const u32 *word, uint32_t rows);

/* Adds the work of `times` tiles of `rows` words; null: full ones. `fragments`, `halves`: the empty parts that kernels skip. */
void tile_count(bool fragments, bool halves, const u32 *word, uint32_t rows, double times,
                struct effort *ret);

/* Adds the work of a range without mask test that `rows` rows see. */
void range_count(bool fragments, struct abi_range range, uint32_t rows, struct effort *ret);

/* Seconds of one such tile or range of a row block, for the choice of entries. whole_tile_price: a partial tile in which
   no part is skipped. fragments_price: a tile without the cost of copying its columns. */
double tile_price(const struct row_block *s, const struct price *p, const u32 *word);
double whole_tile_price(const struct row_block *s, const struct price *p);
double fragments_price(const struct row_block *s, const struct price *p, const u32 *word);
double row_block_range_price(const struct row_block *s, const struct price *p,
                             struct abi_range range);
