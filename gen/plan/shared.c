/* SPDX-License-Identifier: Apache-2.0 */
/* Columns that many row blocks of a pattern gather, such as the summary columns of Fixed. They get groups of their own:
   mixed with other columns, the groups would differ between row blocks, and kernels reuse a group only if the previous
   item had the same columns. */
#include "gen/lowering/gathers.h"
#include "gen/plan/builder.h"
#include "masks/base/memory.h"
#include <stdlib.h>

enum {
    SAMPLE = 64, /* row blocks, evenly over the pattern */
    SHARE = 4,   /* one of this many row blocks gathers a shared column, ... */
    LEAST = 4,   /* ... and at least this many in all */
};

/* Price of the sampled row blocks. */
static double price_sample(struct builder *b, const struct plan *p,
                           const struct pattern *pattern, uint32_t *ret_row_blocks)
{
    const uint32_t row_blocks = (b->row_block->all_rows + p->block_rows - 1) / p->block_rows;
    const uint32_t step = (row_blocks + SAMPLE - 1) / SAMPLE;
    const bool dry = b->dry;
    const double total = b->total;
    *ret_row_blocks = 0;
    b->dry = true;
    b->total = 0;
    for (uint32_t k = 0; k < row_blocks; k += step, (*ret_row_blocks)++)
        builder_row_block(b, pattern, k * p->block_rows, false);
    const double ret = b->total;
    b->dry = dry;
    b->total = total;
    return ret;
}

/* Columns that enough of the sampled row blocks gather. Returns their number, 0 if there are too many. */
static uint32_t find_columns(const struct builder *b, uint32_t n, uint32_t row_blocks, u32 *ret)
{
    uint32_t found = 0;
    for (uint32_t j = 0; j < n; j++) {
        if (b->gathered[j] < LEAST || b->gathered[j] * SHARE < row_blocks)
            continue;
        if (found == COLUMNS_SHARED)
            return 0;
        ret[found++] = j;
    }
    return found;
}

_Static_assert(GATHERS_KEPT + COLUMNS_SHARED / ABI_TILE_COLS <= GATHERS_KEPT_MOST,
               "the most that a plan asks for");

void shared_choose(struct builder *b, const struct plan *p, const struct pattern *pattern)
{
    struct row_block *s = b->row_block;
    uint32_t row_blocks;
    s->n_shared = 0;
    s->shared = b->shared;
    if (!builder_can(b, CAN_KEEP_GATHERS))
        return;
    b->gathered = memory_new(p->n, sizeof *b->gathered);
    const double alone = price_sample(b, p, pattern, &row_blocks);
    const uint32_t found = find_columns(b, p->n, row_blocks, b->shared);
    free(b->gathered);
    b->gathered = NULL;
    s->n_shared = found;
    if (found && price_sample(b, p, pattern, &row_blocks) + found * b->price.gather >= alone)
        s->n_shared = 0;
    const uint32_t kept = GATHERS_KEPT + (s->n_shared + ABI_TILE_COLS - 1) / ABI_TILE_COLS;
    if (!b->dry && kept > b->pass->gathers_kept)
        b->pass->gathers_kept = kept;
}
