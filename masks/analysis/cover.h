/* SPDX-License-Identifier: Apache-2.0 */
/* Which full lines and shapes a statement needs, and what they leave unexplained. Everything in a
   cover is known to lie inside the pattern, so a cover without residue is the pattern. */
#pragma once
#include "masks/analysis/lines.h"
#include "masks/analysis/shapes.h"
#include <stddef.h>

struct cover {
    uint32_t n;
    struct lines lines;   /* owned: those in use */
    struct shapes shapes; /* perm is borrowed */
    struct run *diagonal, *row,
        *column;    /* of each line: the neighbouring lines with the same flag */
    int64_t budget; /* steps left, see cover.c */
};

struct leftover { /* keys begin .. end - 1 of a row that nothing in the cover explains */
    uint32_t row, begin, end;
};

struct leftovers {
    uint64_t cells;
    struct leftover *run; /* the first LEFTOVER_MAX_RUNS of n_runs */
    size_t kept, capacity;
    uint64_t n_runs;
};

enum { LEFTOVER_MAX_RUNS = 1 << 16 };

void cover_init(struct cover *ret, const struct lines *full, const struct shapes *shapes,
                uint64_t n_runs);
void cover_finish(struct cover *c);

/* Drops rows, then columns, then diagonals that the rest of the cover explains. */
void cover_prune(struct cover *c);

/* Drops diagonals of fewer than `cells` entries outside `keep` (may be null): in a mask without
   structure the shortest ones are full by chance. */
void cover_drop_short(struct cover *c, uint32_t cells, const struct offsets *keep);

/* Computes what depends on the lines again; call it after changing c->lines directly. */
void cover_refresh(struct cover *c);

/* False where the walk was given up: it would cost far more than the pattern has runs, or more than
   `most` runs are left. Then *ret counts nothing useful. */
bool cover_leftovers(struct cover *c, const struct pattern *p, uint64_t most,
                     struct leftovers *ret);
void leftovers_finish(struct leftovers *l);
