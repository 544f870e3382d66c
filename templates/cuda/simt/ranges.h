/* SPDX-License-Identifier: Apache-2.0 */
/* ABI_BLOCKS: ranges of columns that every row sees, taken in groups aligned to 32 columns, so
   that dropout needs few calls. */
#ifndef MASKC_CUDA_SIMT_RANGES_H
#define MASKC_CUDA_SIMT_RANGES_H
#include "cuda/simt/walk.h"

DEVICE u32 next_block(struct walk *w, const struct abi_piece *p, struct group *g)
{
    for (; w->element < p->count; w->element++, w->column = 0) {
        struct abi_range r = w->plan->ranges[p->first + w->element];
        u32 end = smaller(r.end, w->job->length);
        u32 at = w->column ? w->column : r.begin;
        if (at >= end)
            continue;
        g->tile = 1;
        g->column = (i32)(at & ~31u);
        w->column = (at & ~31u) + 32;
        group_slots(g, w, at & 31u, smaller(32, end - (at & ~31u)));
        g->bits = bits_between(g->begin, g->end);
        return 1;
    }
    return 0;
}

#endif
