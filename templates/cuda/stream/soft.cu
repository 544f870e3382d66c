/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a soft mask for the half dtypes, after that of the queries. Neighbouring blocks have
   the same sequences. */
#include "cuda/stream/soft.h"

ENTRY_OF(attention_dx, THREADS, SOFT_BLOCKS)(ARGS a)
{
    const u32 n = a.forward.n;
    const u32 tall = (n + STRIP_ROWS - 1) / STRIP_ROWS;
    const u32 wide = (n + SOFT_COLUMNS - 1) / SOFT_COLUMNS;
    const u64 tiles = (u64)a.heads * tall * wide;
    NO_UNROLL
    for (u64 at = BLOCK; at < tiles * a.soft_chunks; at += BLOCKS) {
        u64 tile = at % tiles;
        u32 row = (u32)(tile / wide % tall), column = (u32)(tile % wide);
        soft_tile_gradient(&a, (u32)(tile / wide / tall), STRIP_ROWS * row,
                           SOFT_COLUMNS * column, (u32)(at / tiles));
    }
}
