/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbourhoods in grids of up to three axes, as neighbourhood attention defines them: tokens are cells in
   row order, and a query sees the cells of a window that is moved inside the grid at its borders. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { GRID_MAX_AXES = 3 };

/* kernel * dilation <= size: cells of one residue modulo the dilation form an axis of their own. */
struct grid_axis {
    uint32_t size, kernel, dilation;
    bool causal; /* the window ends at the query and is shorter near the start */
};

struct grid {
    uint32_t n_axes; /* 1 .. 3 */
    struct grid_axis axis
        [GRID_MAX_AXES]; /* the outermost first; the last n_axes of them, the others {1, 1, 1} */
};

/* Cells first, first + step, ..., `count` of them. */
struct grid_span {
    uint32_t first, step, count;
};

/* Positions of the axis that a query at `position` sees. */
struct grid_span grid_span(const struct grid_axis *a, uint32_t position);

/* Runs of keys of query i in ascending order; runs may touch. */
void grid_row(const struct grid *g, uint32_t i,
              void (*add)(void *context, uint32_t begin, uint32_t end), void *context);
