/* SPDX-License-Identifier: Apache-2.0 */
/* Columns that many strips of a pattern gather (the summary columns of Fixed). Strip by strip they would
   stand in groups with others, which differ; kernels keep the last groups only if they are the same. */
#include "gen/lowering/gathers.h"
#include "gen/plan/builder.h"
#include "masks/base/memory.h"
#include <stdlib.h>

enum {
    SAMPLE = 64, /* strips, evenly over the pattern */
    SHARE = 4,   /* one in so many gathers a shared column, ... */
    LEAST = 4,   /* ... and that many in all */
};

/* The sampled strips' price. */
static double price_sample(struct builder *b, const struct plan *p,
                           const struct pattern *pattern, uint32_t *ret_strips)
{
    const uint32_t strips = (p->n + p->strip_rows - 1) / p->strip_rows;
    const uint32_t step = (strips + SAMPLE - 1) / SAMPLE;
    const bool dry = b->dry;
    const double total = b->total;
    *ret_strips = 0;
    b->dry = true;
    b->total = 0;
    for (uint32_t k = 0; k < strips; k += step, (*ret_strips)++)
        builder_strip(b, pattern, k * p->strip_rows, false);
    const double ret = b->total;
    b->dry = dry;
    b->total = total;
    return ret;
}

/* What so many of the sampled strips gather, if it is not too much. */
static uint32_t find_columns(const struct builder *b, uint32_t n, uint32_t strips, u32 *ret)
{
    uint32_t found = 0;
    for (uint32_t j = 0; j < n; j++) {
        if (b->gathered[j] < LEAST || b->gathered[j] * SHARE < strips)
            continue;
        if (found == COLUMNS_SHARED)
            return 0;
        ret[found++] = j;
    }
    return found;
}

void shared_choose(struct builder *b, const struct plan *p, const struct pattern *pattern)
{
    struct strip *s = b->strip;
    uint32_t strips;
    s->n_shared = 0;
    s->shared = b->shared;
    if (!b->shares_columns)
        return;
    b->gathered = memory_new(p->n, sizeof *b->gathered);
    const double alone = price_sample(b, p, pattern, &strips);
    const uint32_t found = find_columns(b, p->n, strips, b->shared);
    free(b->gathered);
    b->gathered = NULL;
    s->n_shared = found;
    if (found && price_sample(b, p, pattern, &strips) + found * b->price.gather >= alone)
        s->n_shared = 0;
    const uint32_t kept = GATHERS_KEPT + (s->n_shared + ABI_TILE_COLS - 1) / ABI_TILE_COLS;
    if (!b->dry && kept > b->pass->gathers_kept)
        b->pass->gathers_kept = kept;
}
