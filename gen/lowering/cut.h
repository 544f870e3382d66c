/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of a row block cut into lines. */
#pragma once
#include "gen/lowering/lowering.h"

struct cut {
    const struct row_block *s;
    u32 *
        bits; /* [n_touched + 1][block_rows], by place in row_block.touched: entries not yet in a line */
    bool *chosen;     /* [n_touched] tiles to cut */
    uint32_t *starts; /* [n_touched] lines that begin there */
};

/* Adds the lines of all open entries of the chosen tiles, longest first, to d->lines. */
void cut_lines(struct cut *c, struct draft *d);
