/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a bias for the half dtypes, after that of the queries. Neighbouring blocks have
   the same sequences. */
#include "cuda/tiled/bias.h"

ENTRY_OF(attention_dx, THREADS, BIAS_BLOCKS)(ARGS a)
{
    const u32 n = a.forward.n;
    const u32 tall = (n + BLOCK_ROWS - 1) / BLOCK_ROWS;
    const u32 wide = (n + BIAS_COLUMNS - 1) / BIAS_COLUMNS;
    const u64 tiles = (u64)a.heads * tall * wide;
    NO_UNROLL
    for (u64 at = BLOCK; at < tiles * a.bias_chunks; at += BLOCKS) {
        u64 tile = at % tiles;
        u32 row = (u32)(tile / wide % tall), column = (u32)(tile % wide);
        bias_tile_gradient(&a, (u32)(tile / wide / tall), BLOCK_ROWS * row,
                           BIAS_COLUMNS * column, (u32)(at / tiles));
    }
}
