/* SPDX-License-Identifier: Apache-2.0 */
/* ABI_ROWS: the columns of one row, spread over the block: quad q takes columns q, q + 32, ...
   of a range, and what the quads found is put together at the end (row_sum, store_shared). */
#ifndef MASKC_CUDA_SIMT_ROWS_H
#define MASKC_CUDA_SIMT_ROWS_H
#include "cuda/simt/walk.h"

enum { ROWS_STEP = 32 * BLOCK_ROWS }; /* columns of a group */

DEVICE u32 next_row_part(struct walk *w, const struct abi_piece *p, struct group *g)
{
    for (; w->element < p->count; w->element++, w->column = 0) {
        struct abi_range r = w->plan->ranges[p->first + w->element];
        u32 end = smaller(r.end, w->job->length);
        u32 at = w->column ? w->column : r.begin;
        if (at >= end)
            continue;
        g->tile = 0;
        g->line = 0;
        g->column = (i32)at;
        w->column = at + ROWS_STEP;
        group_slots(g, w, 0, smaller(32, (end - at + BLOCK_ROWS - 1) / BLOCK_ROWS));
        g->bits = 0;
        NO_UNROLL
        for (u32 s = 0; s < g->end; s++)
            g->bits |= (u32)(group_column(g, s) < end) << s;
        return 1;
    }
    return 0;
}

#endif
