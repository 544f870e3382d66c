/* SPDX-License-Identifier: Apache-2.0 */
/* Structure of a pattern, independent of how it was given. `show` reports these facts, and `make -o FILE.mask` states a
   mask exactly from them. Works on runs: cost linear in rows plus runs, plus the cells that no structure explains. */
#pragma once
#include "masks/pattern.h"
#include <stdbool.h>
#include <stdint.h>

struct offsets { /* full diagonals j - i = low .. high (offsets, may be negative) */
    int32_t low, high;
};

/* Blocks of ceil(n / k) tokens: the active entries contain exactly blocks b -> perm[b] (0-based). */
struct blocks {
    uint32_t k;     /* 0: none */
    uint32_t *perm; /* [k] */
};

/* One term of a mask's statement in the mask language, e.g. "window(4)" or "stride(4)". */
struct term {
    char *text;      /* in the mask language */
    char *structure; /* for `show`: "distance 0,1,2,4", "global rows 0,511", ... */
};

/* clang-format off */
struct analysis {
    uint32_t n;
    uint64_t active;
    uint32_t empty_rows;
    bool symmetric;
    struct offsets *diagonals; /* full ones, ascending, adjacent ones joined */
    uint32_t n_diagonals;
    uint32_t *global_rows, n_global_rows; /* every key on, the diagonal perhaps excepted */
    uint32_t *global_columns, n_global_columns;
    struct blocks blocks;
    uint32_t stride;                 /* all (i - j) % stride == 0 are on; 0: none */
    uint32_t local;                  /* all i / local == j / local are on; 0: none */
    uint32_t summary_block, summary; /* columns j % block >= block - summary are full; 0: none */
    struct term *terms;              /* union of these, minus `without`, is the mask if exact */
    uint32_t n_terms;
    struct term without; /* text null: nothing; else e.g. "diagonal(0)" */
    uint64_t residue;    /* active entries that no term explains */
    bool exact;          /* the statement gives the pattern bit for bit (checked, not assumed) */
};
/* clang-format on */

/* Never fails; what it does not recognise is counted in `residue`. */
struct analysis *analysis_run(const struct pattern *p);
void analysis_destroy(struct analysis *a);

/* The statement as one expression of the language; null where it is not exact. Caller frees. */
char *analysis_expression(const struct analysis *a);
