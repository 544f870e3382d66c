/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments: on a matrix unit of CUDA a tile is 16 x 8 at a time, and those without an active entry
   are left out; columns, of whatever piece, are first brought to shared memory, 32 at a time. */
#pragma once
#include "gen/cost/price.h"
#include "gen/lowering/row_block.h"

enum { FRAGMENT_ROWS = 16, FRAGMENT_COLS = 8 };

/* Entries of the fragments that are visited in a tile of `rows` words; null: a full one. Of rows
   and columns that are not there too. */
double fragment_entries(const u32 *word, uint32_t rows);

/* The same, of `rows` rows and the first `columns` columns alone. */
uint64_t fragment_cells(const u32 *word, uint32_t rows, uint32_t columns);

/* Entries that are visited in a tile where an empty half of 16 columns is left out, as AMX does it: a
   half of one tile and the neighbouring half of the next are a panel. */
double halves_entries(const u32 *word, uint32_t rows);

/* Adds the work of `times` tiles of `rows` words; null: full ones. `fragments`, `halves`: what kernels leave out. */
void tile_count(bool fragments, bool halves, const u32 *word, uint32_t rows, double times,
                struct effort *ret);

/* Adds the work of a range without mask test that `rows` rows see. */
void range_count(bool fragments, struct abi_range range, uint32_t rows, struct effort *ret);

/* Seconds of one such tile or range of a row block, for the choice of entries. whole_tile_price: of a tile under a
   pattern that leaves nothing out. fragments_price: of a tile without the columns that are brought for it. */
double tile_price(const struct row_block *s, const struct price *p, const u32 *word);
double whole_tile_price(const struct row_block *s, const struct price *p);
double fragments_price(const struct row_block *s, const struct price *p, const u32 *word);
double row_block_range_price(const struct row_block *s, const struct price *p,
                             struct abi_range range);
