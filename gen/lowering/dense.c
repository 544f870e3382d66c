/* SPDX-License-Identifier: Apache-2.0 */
/* Every tile, active or not: what the planner compares with, and never falls behind. It has no
   pieces of its own: where every tile has an active entry, tiles without more are the dense way. */
#include "gen/lowering/lowering.h"

extern const struct lowering lowering_dense;

static void count_alone(struct row_block *s, struct effort *ret)
{
    const double solid = row_block_solid_tiles(s), entries = 32.0 * s->rows;
    ret->count[UNIT_FULL] += entries * solid;
    ret->count[UNIT_PARTIAL] += entries * (s->tiles - solid);
    ret->count[UNIT_GATHER] += s->fragments ? (double)s->tiles * ABI_TILE_COLS : 0;
}

const struct lowering lowering_dense = {
    .name = "dense",
    .kind = ABI_TILES,
    .count_alone = count_alone,
};
