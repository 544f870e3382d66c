/* SPDX-License-Identifier: Apache-2.0 */
/* A small area of shared memory behind the operands. It holds what is needed seldom and would take registers
   through the loop over columns: the work's index, addresses, where the walk is; and what comes with a column tile:
   words of patterns, LSE and delta of columns. In words of 32 bits. */
#ifndef MASKC_CUDA_TILED_NOTES_H
#define MASKC_CUDA_TILED_NOTES_H
#include "cuda/common/matrix.h"
#include "cuda/common/sizes.h"

enum {
    WALK_WORDS = 12,  /* of a warp (run.h) */
    NOTE_WORK = 0,    /* the work: index, sequence, head, item */
    NOTE_NUMBERS = 4, /* addresses of the sequence's LSE and delta */
    NOTE_WALK = 8,    /* where each warp's walk goes on behind a run */
    /* The block's next work, in words that the walks of the first three warps leave free. */
    NOTE_NEXT = NOTE_WALK + 9,                  /* head */
    NOTE_NEXT_ITEM = NOTE_NEXT + WALK_WORDS,    /* item */
    NOTE_NEXT_AT = NOTE_NEXT_ITEM + WALK_WORDS, /* index */
    NOTE_PATTERN =
        NOTE_WALK +
        WALK_WORDS *
            (THREADS / 32), /* a word for each row of the row block, of two column tiles */
    FORWARD_NOTES = NOTE_PATTERN + 2 * BLOCK_ROWS,
    /* Backward only: */
    NOTE_COLUMNS = FORWARD_NOTES, /* LSE and delta of each column of the tiles in flight */
    NOTE_PLACES =
        NOTE_COLUMNS + 2 * TILED_BUFFERS(HEAD_DIM) *
                           CUDA_TILE_COLS, /* addresses of copies, 4 words for each thread */
    BACKWARD_NOTES = NOTE_PLACES + 4 * THREADS,
};

typedef char
    notes_are_as_planned[4 * FORWARD_NOTES == TILED_FORWARD_NOTES(BLOCK_ROWS, THREADS) &&
                                 4 * BACKWARD_NOTES ==
                                     TILED_BACKWARD_NOTES(BLOCK_ROWS, THREADS, HEAD_DIM)
                             ? 1
                             : -1];

/* An address in two words. */
DEVICE void note_address(u32 *at, const void *p)
{
    const u64 x = (u64)p;
    const struct u32x2 both = {(u32)x, (u32)(x >> 32)};
    shared_put_u32x2(at, both);
}

DEVICE const void *noted_address(const u32 *at)
{
    const struct u32x2 x = shared_get_u32x2(at);
    return (const void *)(x.x | (u64)x.y << 32);
}

#endif
