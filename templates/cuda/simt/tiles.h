/* SPDX-License-Identifier: Apache-2.0 */
/* ABI_TILES: 32 columns under a pattern, or full. */
#ifndef MASKC_CUDA_SIMT_TILES_H
#define MASKC_CUDA_SIMT_TILES_H
#include "cuda/simt/walk.h"

DEVICE u32 next_tile(struct walk *w, const struct abi_piece *p, struct group *g)
{
    while (w->element < p->count) {
        const struct abi_tile *t = w->plan->tiles + p->first + w->element++;
        if (t->col0 >= w->job->length)
            continue;
        g->tile = 1;
        g->column = (i32)t->col0;
        group_slots(g, w, 0, smaller(32, w->job->length - t->col0));
        g->bits = bits_between(0, g->end);
        if (t->pattern)
            g->bits &= w->plan->patterns[(u64)(t->pattern - 1) * BLOCK_ROWS + quad()];
        return 1;
    }
    return 0;
}

#endif
