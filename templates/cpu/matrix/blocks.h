/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the products on a matrix unit: blocks of 16 rows, their steps, and the part of the sums that is worked on. */
#ifndef MASKC_CPU_MATRIX_BLOCKS_H
#define MASKC_CPU_MATRIX_BLOCKS_H
#include "cpu/layout.h"

enum { MICRO_ROWS = 16, BLOCKS = BLOCK_ROWS / MICRO_ROWS, BLOCKS_ALL = (1 << BLOCKS) - 1 };
typedef char two_blocks_of_rows[BLOCKS == 2 ? 1 : -1];

/* From row to row of P and dS: an odd number of cache lines. */
enum { P_STRIDE = CPU_P_STRIDE(CHUNK_COLS) };

/* P or dS from column `at` on, and what it is multiplied with: 32 rows in pairs. */
struct sums_step {
    u32 at;
    const u32 *pairs;
};

/* Which sums are worked on: one or two `columns` of 16, in the blocks of rows whose bit of `live` is set. `blank`: they
   hold nothing yet. */
struct sums_part {
    u32 columns, live, blank;
};

#endif
