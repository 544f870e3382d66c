/* SPDX-License-Identifier: Apache-2.0 */
/* A row block as the lowerings see it. Whole tiles that every owned row sees are stored as `solid` ranges, the other
   entries as bits, 32 keys a word, in tiles: [tile][row]. A band or a triangle has bits only at its edge. The row block
   is built from runs; its memory is block_rows x n bits, twice, of which only the touched tiles are cleared. */
#pragma once
#include "masks/pattern.h"
#include "templates/abi.h"
#include <stddef.h>

struct row_block {
    const struct pattern *pattern;
    uint32_t all_rows;   /* of the pass */
    uint32_t tiles;      /* its columns / 32, rounded up */
    uint32_t block_rows; /* rows of a tile: 32 .. ABI_MAX_BLOCK_ROWS */
    bool fragments;      /* set by the owner: tiles are priced by 16 x 8 (fragments.h), ... */
    bool halves;         /* ... by 16 columns; ... */
    bool lines_alone;    /* ... lines visit all open entries */
    const u32 *shared;   /* columns that many row blocks gather, ascending: set by the owner */
    uint32_t n_shared;
    uint32_t row0, rows; /* rows: fewer than block_rows at the end of a pattern */
    u32 own[ABI_MAX_BLOCK_ROWS / 32];
    uint32_t owned;                      /* number of bits in own */
    uint32_t active[ABI_MAX_BLOCK_ROWS]; /* active keys of each row, owned or not */
    uint64_t cells;                      /* sum of active over the owned rows */
    bool equal;                          /* every owned row sees exactly the common ranges */
    struct abi_range *common;            /* keys that every owned row sees, ascending */
    struct abi_range *solid; /* the whole tiles in them: bounds are multiples of 32 */
    uint8_t *solid_open;     /* [n_solid] 0: a lowering of this draft visits it */
    uint32_t n_common, n_solid;
    u32 *bits;         /* [tiles][block_rows]: owned entries outside of solid */
    u32 *open;         /* those that no lowering of this draft visits yet */
    uint32_t *touched; /* tiles with a bit, ascending */
    uint32_t *count;   /* [n_touched] bits of the tile */
    uint32_t *starts;  /* [n_touched] bits without a neighbour above or upper left */
    uint32_t n_touched;
    /* internal */
    uint64_t *touched_map;
    struct abi_range *spare;
    uint32_t common_capacity, spare_capacity, solid_capacity, open_capacity;
};

/* For a pass of so many rows and columns. */
struct row_block *row_block_new(uint32_t rows, uint32_t columns, uint32_t block_rows);
void row_block_destroy(struct row_block *s);

/* Loads rows row0 .. of the pattern whose `own` bit is on; null: all rows. */
void row_block_load(struct row_block *s, const struct pattern *p, uint32_t row0,
                    const u32 *own);

/* Opens every entry again, for the next draft. */
void row_block_reopen(struct row_block *s);

/* Row of the pattern that is row r of the row block. All code uses this function. */
static inline uint32_t block_row(const struct row_block *s, uint32_t r)
{
    return s->row0 + r;
}

static inline bool row_block_owns(const struct row_block *s, uint32_t r)
{
    return s->own[r / 32] >> (r % 32) & 1;
}

static inline u32 *row_block_tile(const struct row_block *s, u32 *bits, uint32_t tile)
{
    return bits + (size_t)tile * s->block_rows;
}

uint32_t row_block_open_cells(const struct row_block *s, uint32_t tile);
bool row_block_is_open(const struct row_block *s,
                       uint32_t tile); /* true if it has an open entry */
void row_block_close(struct row_block *s, uint32_t tile);
uint32_t row_block_solid_tiles(const struct row_block *s);
