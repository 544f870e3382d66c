/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of a block of each CUDA family, in bytes, from the numbers of a kernel config. The planner (gen/family) asks
   for it by these; the templates hold their layouts against them. Plain C without headers. */
#ifndef MASKC_CUDA_COMMON_SIZES_H
#define MASKC_CUDA_COMMON_SIZES_H

enum {
    CUDA_TILE_COLS = 32, /* columns of a column tile */
    CUDA_HALF = 2,       /* bytes */
    CUDA_FLOAT = 4,
};

#define CUDA_ROUND_16(x) (((x) + 15) / 16 * 16)

/* SIMT: three tiles of 32 rows of floats, 4 more a row against bank conflicts; a float for each quad. */
#define SIMT_SHARED_BYTES(head_dim) ((3 * 32 * ((head_dim) + 4) + 32) * CUDA_FLOAT)

/* Tiled: notes (templates/cuda/tiled/notes.h), with two words for each row and twelve for each warp; backward 16 bytes for
   each thread and 8 for each column of the column tiles in flight too. */
#define TILED_FORWARD_NOTES(block_rows, threads) (32 + 8 * (block_rows) + 48 * ((threads) / 32))
/* Column tiles in flight backward: double-buffered where two fit. */
#define TILED_BUFFERS(head_dim) ((head_dim) <= 128 ? 2 : 1)
#define TILED_BACKWARD_NOTES(block_rows, threads, head_dim)                                    \
    (TILED_FORWARD_NOTES(block_rows, threads) + 8 * TILED_BUFFERS(head_dim) * CUDA_TILE_COLS + \
     16 * (threads))
/* Q; two buffers of K and V. */
#define TILED_FORWARD_BYTES(block_rows, threads, head_dim)                           \
    (CUDA_HALF * ((block_rows) + 2 * 2 * CUDA_TILE_COLS) * CUDA_ROUND_16(head_dim) + \
     TILED_FORWARD_NOTES(block_rows, threads))
/* Two operands of the row block, two of each buffer. The gradient of a bias takes as much: two tiles of columns. */
#define TILED_BACKWARD_BYTES(block_rows, threads, head_dim)                          \
    (CUDA_HALF * (2 * (block_rows) + TILED_BUFFERS(head_dim) * 2 * CUDA_TILE_COLS) * \
         CUDA_ROUND_16(head_dim) +                                                   \
     TILED_BACKWARD_NOTES(block_rows, threads, head_dim))

/* Resident, of a head: V, K, and Q where it is copied too (1). */
#define RESIDENT_FORWARD_BYTES(rows, head_dim, q_copied) \
    ((2 + (q_copied)) * CUDA_HALF * (rows)*CUDA_ROUND_16(head_dim))
/* Resident, of a head: Q, K, V and dO; P or dS, n x n; a word for each of 16 warp tiles. */
#define RESIDENT_BACKWARD_BYTES(rows, head_dim)                                                \
    (4 * CUDA_HALF * (rows)*CUDA_ROUND_16(head_dim) + CUDA_HALF * (rows)*CUDA_ROUND_16(rows) + \
     64)

#endif
