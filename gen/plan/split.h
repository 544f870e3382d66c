/* SPDX-License-Identifier: Apache-2.0 */
/* Strides: entries whose query and key are of one residue class modulo `step`, apart from the rest.
   The rows of a class share their columns, so brought together they are blocks. */
#pragma once
#include "masks/pattern.h"

enum { SPLIT_MOST = 3 };

struct split {
    uint32_t step;
    struct pattern
        *classes;         /* entries with (row - column) % step == 0, of rows that take part */
    struct pattern *rest; /* all others */
    bool whole;           /* `classes` has all entries of rows that take part */
};

/* Steps that may be worth a split, the most promising first; returns how many. Quick. */
uint32_t split_candidates(const struct pattern *p, uint32_t step[SPLIT_MOST]);
/* False where the parts would be too large to hold: *ret is empty then. */
/* Row `apart` (n: none) takes no part. */
bool split_make(const struct pattern *p, uint32_t step, bool whole, uint32_t apart,
                struct split *ret);
void split_finish(struct split *s); /* an empty one is fine */
