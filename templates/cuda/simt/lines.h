/* SPDX-License-Identifier: Apache-2.0 */
/* ABI_DIAGONAL: up to 32 lines at a time, one column of its own for each row on each. */
#ifndef MASKC_CUDA_SIMT_LINES_H
#define MASKC_CUDA_SIMT_LINES_H
#include "cuda/simt/walk.h"

DEVICE u32 next_lines(struct walk *w, const struct abi_piece *p, struct group *g)
{
    if (w->element >= p->count)
        return 0;
    u32 count = smaller(32, p->count - w->element), r = quad();
    g->tile = 0;
    g->line = w->plan->lines + p->first + w->element;
    w->element += count;
    group_slots(g, w, 0, count);
    g->bits = 0;
    NO_UNROLL
    for (u32 s = 0; s < count; s++) {
        u32 here = r >= g->line[s].row_begin && r < g->line[s].row_end;
        if (here && group_column(g, s) < w->job->length)
            g->bits |= 1u << s;
    }
    return 1;
}

#endif
