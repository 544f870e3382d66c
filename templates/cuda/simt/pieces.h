/* SPDX-License-Identifier: Apache-2.0 */
/* The next group of a walk, of whatever kind its piece is; 0 at the end. */
#ifndef MASKC_CUDA_SIMT_PIECES_H
#define MASKC_CUDA_SIMT_PIECES_H
#include "cuda/simt/columns.h"
#include "cuda/simt/lines.h"
#include "cuda/simt/ranges.h"
#include "cuda/simt/rows.h"
#include "cuda/simt/tiles.h"

DEVICE u32 next_of_piece(struct walk *w, const struct abi_piece *p, struct group *g)
{
    switch (p->kind) {
    case ABI_BLOCKS:
        return next_block(w, p, g);
    case ABI_TILES:
        return next_tile(w, p, g);
    case ABI_DIAGONAL:
        return next_lines(w, p, g);
    case ABI_COLUMNS:
        return next_columns(w, p, g);
    default:
        return next_row_part(w, p, g);
    }
}

DEVICE u32 walk_next(struct walk *w, struct group *g)
{
    while (w->piece < w->pieces_end) {
        g->line = 0;
        g->columns = 0;
        g->column = 0;
        if (next_of_piece(w, w->plan->pieces + w->piece, g)) {
            if (!w->job->active)
                g->bits = 0;
            return 1;
        }
        w->piece++;
        w->element = w->column = 0;
    }
    return 0;
}

#endif
