/* SPDX-License-Identifier: Apache-2.0 */
/* The best statement of one pattern as a union of terms. */
#pragma once
#include "masks/analysis/phrase.h"

struct statement {
    struct phrase phrase;
    struct shapes shapes; /* those that it uses; owned */
    uint64_t residue;     /* entries that no term explains */
    bool exact;
};

/* The diagonals low .. high of `without` (null: none) will be taken away from the union afterwards,
   so that no term needs to name them; they must be on in p from end to end. */

/* All of p in words; not exact, and nothing is said, where that is not found. */
struct statement statement_all(const struct pattern *p, const struct offsets *without);

/* Structure found in p, with the residue. */
struct statement statement_part(const struct pattern *p, const struct offsets *without);
void statement_finish(struct statement *s);
