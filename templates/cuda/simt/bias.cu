/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a bias, in float, after that of the queries. */
#include "cuda/simt/bias_gradient.h"

ENTRY(attention_dx)(ARGS a)
{
    const u32 side = (a.forward.n + 31) / 32;
    const u64 tiles = (u64)a.heads * side * side;
    NO_UNROLL
    for (u64 at = BLOCK; at < tiles * a.bias_chunks; at += BLOCKS) {
        u64 tile = at % tiles;
        u32 h = (u32)(tile / side / side), row = (u32)(tile / side % side);
        bias_tile(&a, h, 32 * row, 32 * (u32)(tile % side), (u32)(at / tiles));
    }
}
