/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread holds what. A block of 128 threads works on a row block of 32 rows; a quad, four neighbouring
   threads, has one row. A column tile has 32 slots, a thread 8 of them. Positions of the head come in chunks of
   16, a thread has 4 of each. Operands of 32 rows lie in shared memory as float, three of them at a time. */
#ifndef MASKC_CUDA_SIMT_LAYOUT_H
#define MASKC_CUDA_SIMT_LAYOUT_H
#include "cuda/common/numbers.h"
#include "kernel_config.h"

enum {
    QUAD = 4,
    SLOTS = 8,                     /* of a thread, in a column tile of 32 */
    CHUNKS = (HEAD_DIM + 15) / 16, /* of a head */
    /* Unrolled slots: more compile slowly and take registers. */
    SLOTS_UNROLLED = CHUNKS <= 8 ? 4 : 1,
    PITCH = HEAD_DIM + 4, /* floats from row to row: no bank conflicts */
    TILE_FLOATS = BLOCK_ROWS * PITCH,
    SHARED_SUMS = 3 * TILE_FLOATS, /* then 32 floats, one per quad */
};

typedef char row_block_of_32_rows[BLOCK_ROWS == 32 && THREADS == 128 ? 1 : -1];
typedef char
    shared_is_as_planned[(SHARED_SUMS + BLOCK_ROWS) * 4 == SIMT_SHARED_BYTES(HEAD_DIM) &&
                                 SHARED_BYTES >= SIMT_SHARED_BYTES(HEAD_DIM)
                             ? 1
                             : -1];

DEVICE u32 quad(void)
{
    return THREAD / QUAD;
}

/* The slot at place k of lane u of a quad: columns 2u, 2u + 1, 2u + 8, 2u + 9 of each 16, as one dropout call
   serves them. Rows read in this order have no bank conflict. */
DEVICE u32 slot_of(u32 k, u32 u)
{
    return 2 * u + (k & 1) + 8 * (k >> 1);
}

DEVICE u32 chunk_of(u32 k)
{
    return 16 * k + 4 * quad_lane();
}

DEVICE float *shared_tile(u32 which)
{
    return SHARED() + which * TILE_FLOATS;
}

/* Lane u's value, in all lanes of its quad. */
DEVICE float quad_from(float x, u32 u)
{
    return SHUFFLE_FROM(x, (THREAD & 28) + u);
}

#endif
