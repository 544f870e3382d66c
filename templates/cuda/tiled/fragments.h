/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments: a warp holds one or two row tiles of 16 rows; column tiles have 32 columns, four fragments of 16 x 8. Products
   (products.h) leave out fragments in which no row sees a column: `live` has a bit for each row tile and column, set where a row sees the column. Lane
   l holds rows g = l / 4 and g + 8 of each row tile, and columns 2t, 2t + 1 of each fragment, t = l % 4. */
#ifndef MASKC_CUDA_TILED_FRAGMENTS_H
#define MASKC_CUDA_TILED_FRAGMENTS_H
#include "cuda/common/matrix.h"
#include "cuda/common/numbers.h"

enum {
    STEPS = (HEAD_DIM + 15) / 16, /* of 16 positions of the head: a product takes one */
    CHUNKS = 2 * STEPS,           /* of 8 positions, 16 bytes */
    HEAD_CHUNKS = HEAD_DIM / 8,   /* of them in the tensors; the rest is zeros */
    PITCH = 8 * CHUNKS,           /* halves from row to row */
    MIXED = CHUNKS % 8 == 0   ? 8 /* chunks that are permuted among themselves */
            : CHUNKS % 4 == 0 ? 4
                              : 2,
    MIX_ROWS = 8 / MIXED,                 /* neighbouring rows that are permuted alike */
    FRAGMENTS = 4,                        /* of a column tile of 32 */
    ROW_TILES = 2 * BLOCK_ROWS / THREADS, /* of 16 rows, of a warp: 1 or 2 */
    WARP_ROWS = 16 * ROW_TILES,
    LANE_ROWS = 2 * ROW_TILES, /* rows of which a lane holds entries */
    /* Unrolled pairs of steps where rows are in shared memory: few beside much other code or the registers of
       dropout. */
    SHARED_STEPS = DROPOUT              ? 1
                   : STEPS <= 4         ? 4
                   : BIAS || STEPS == 6 ? 1
                                        : 2,
    TILE_COLS = 8 * FRAGMENTS,
    ALL_APART = !BIAS && !DROPOUT && TRANSFORM == ABI_SOFTMAX,
};

typedef char
    a_warp_holds_one_or_two_row_tiles[(ROW_TILES == 1 || (ROW_TILES == 2 && ALL_APART)) &&
                                              WARP_ROWS * THREADS == 32 * BLOCK_ROWS
                                          ? 1
                                          : -1];

#define ALL_LIVE 0xffffffffffffffffull

/* One number for each of the lane's entries of a column tile in one row tile. */
struct scores {
    struct frag_c at[FRAGMENTS];
};

/* O or a gradient: one row tile, two fragments for each step. */
struct sums {
    struct frag_c at[2 * STEPS];
};

/* A row tile as first operand, held in registers. */
struct rows {
    struct frag_a at[STEPS];
};

/* Returns the columns that some row of row tile m sees. */
DEVICE u32 live_of(u64 live, u32 m)
{
    return (u32)(live >> 32 * m);
}

/* Returns the columns that some row of the warp sees. */
DEVICE u32 live_any(u64 live)
{
    return ROW_TILES == 1 ? live_of(live, 0) : live_of(live, 0) | live_of(live, 1);
}

/* Nonzero if fragment f has one of these columns. */
DEVICE u32 has_fragment(u32 columns, u32 f)
{
    return columns >> (8 * f) & 0xff;
}

/* Nonzero if one of these columns is among the 16 of a pair of fragments. */
DEVICE u32 has_pair(u32 columns, u32 pair)
{
    return columns >> (16 * pair) & 0xffff;
}

/* The lane's rows of the warp: g + 8 which, which < LANE_ROWS. */
DEVICE u32 lane_row(u32 which)
{
    return lane() / 4 + 8 * which;
}

DEVICE u32 lane_pair(void)
{
    return 2 * (quad_lane());
}

/* ---- rows in shared memory ---- */

/* Chunks of a row are permuted: eight rows of one chunk lie in different banks, and the chunks that a copy writes fill
   whole sectors of 32 bytes, which rows with padding would not. Rows are counted from a multiple of 8. */

/* Elements from the first row to a chunk of row r: halves, or floats if rows have PITCH floats. */
DEVICE u32 chunk_place(u32 r, u32 chunk)
{
    return r * PITCH + 8 * (chunk ^ r % 8 / MIX_ROWS);
}

/* The place of a chunk, computed from the place of chunk 0 of the same row. */
DEVICE u32 chunk_of(u32 place, u32 chunk)
{
    return (place ^ 8 * (chunk % MIXED)) + 8 * (chunk / MIXED * MIXED);
}

/* ---- loads ---- */

/* chunk_of() for an address in shared memory. Constants (`row`, the fragment's first) are added last, in bytes: they become part of the
   instruction. */
DEVICE shared_at chunk_at(shared_at at, u32 chunk)
{
    return shared_flip(at, 16 * (chunk % MIXED)) + 16 * (chunk / MIXED * MIXED);
}

/* The lane's address in 16 rows: of chunk 0 or 1. */
DEVICE shared_at rows_at(const half_t *rows)
{
    return one_address(rows + chunk_place(lane() % 16, lane() / 16));
}

/* 16 rows, one step: the first operand. */
DEVICE void load_rows(struct frag_a *a, const half_t *rows, u32 step)
{
    matrix_load4(a->x, chunk_at(rows_at(rows), 2 * step));
}

/* The lane's address for loads of columns. With one step left its two chunks are loaded twice. */
DEVICE shared_at columns_at(const half_t *columns, u32 left)
{
    u32 l = lane(), chunk = left == 1 ? l / 8 % 2 : l / 8;
    return one_address(columns + chunk_place(l % 8, chunk));
}

/* 8 columns, two steps: the second operand of two products that sum along the head. */
DEVICE void load_columns(u32 r[4], shared_at at, u32 row, u32 step)
{
    matrix_load4(r, chunk_at(at, 2 * step) + 2 * row * PITCH);
}

/* 16 columns, one step: the second operand of two products that sum over columns. `at`: rows_at. */
DEVICE void load_values(u32 r[4], shared_at at, u32 row, u32 step)
{
    matrix_load4_transposed(r, chunk_at(at, 2 * step) + 2 * row * PITCH);
}

#endif
