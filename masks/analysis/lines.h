/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a pattern that are on from end to end: diagonals, rows and columns, as flags.
   Offset o = j - i stands at o + n - 1. Internal to the analysis. */
#pragma once
#include "masks/pattern.h"

struct lines {
    uint32_t n;
    uint8_t *diagonal;     /* [2n - 1] */
    uint8_t *row, *column; /* [n] */
};

struct line_counts {
    uint32_t n;
    int32_t *diagonal;      /* [2n]: active entries on each diagonal; the last is unused */
    uint32_t *row, *column; /* [n], [n + 1] */
};

/* One pass over the runs: each adds to a difference array, however long it is. */
void line_counts_init(struct line_counts *ret, const struct pattern *p);
void line_counts_finish(struct line_counts *c);

static inline uint32_t diagonal_length(uint32_t n, uint32_t at)
{
    return at < n ? at + 1 : 2 * n - 1 - at;
}

void lines_init(struct lines *ret, uint32_t n); /* none on */
void lines_fill(struct lines *l, const struct line_counts *c);
void lines_copy(struct lines *ret, const struct lines *l);
void lines_finish(struct lines *l);
