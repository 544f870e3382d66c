/* SPDX-License-Identifier: Apache-2.0 */
/* Every tile, active or not: what the planner compares with, and never falls behind. It has no
   pieces of its own: where every tile has an active entry, tiles without more are the dense way. */
#include "gen/lowering/lowering.h"

extern const struct lowering lowering_dense;

static double cost(struct row_block *s, const struct price *p)
{
    uint32_t solid = row_block_solid_tiles(s);
    double entries = 32.0 * s->rows,
           columns = s->fragments ? (double)s->tiles * ABI_TILE_COLS : 0;
    return row_block_price(s, p) + columns * p->gather +
           entries * (solid * p->full + (s->tiles - solid) * p->partial);
}

const struct lowering lowering_dense = {
    .name = "dense",
    .kind = ABI_TILES,
    .cost = cost,
};
