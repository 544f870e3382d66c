/* SPDX-License-Identifier: Apache-2.0 */
/* ABI_COLUMNS: up to 32 columns from anywhere, as a tile that is loaded through their list. */
#ifndef MASKC_CUDA_SIMT_COLUMNS_H
#define MASKC_CUDA_SIMT_COLUMNS_H
#include "cuda/simt/walk.h"

DEVICE u32 next_columns(struct walk *w, const struct abi_piece *p, struct group *g)
{
    while (w->element < p->count) {
        const struct abi_gather *t = w->plan->gathers + p->first + w->element++;
        u32 count = t->count;
        g->columns = w->plan->columns + t->first;
        while (count && g->columns[count - 1] >= w->job->length)
            count--;
        if (!count)
            continue;
        g->tile = 1;
        group_slots(g, w, 0, count);
        g->bits = bits_between(0, count);
        if (t->pattern)
            g->bits &= w->plan->patterns[(u64)(t->pattern - 1) * BLOCK_ROWS + quad()];
        return 1;
    }
    return 0;
}

#endif
