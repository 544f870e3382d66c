/* SPDX-License-Identifier: Apache-2.0 */
/* One row of a mask while an expression is evaluated: a sorted list of runs that never touch, and
   the four operators of the language on it. Each costs what its operands' runs cost. */
#pragma once
#include "masks/pattern.h"
#include <stddef.h>

struct runs {
    struct run *run;
    size_t count, capacity;
};

/* The keys that a row is asked for: whatever lies outside is not produced. */
struct clip {
    uint32_t begin, end;
};

void runs_finish(struct runs *r); /* a zeroed one is fine */

/* Appends begin .. end - 1 as far as it lies in the clip; calls come in ascending order of begin,
   and what touches or overlaps the run before is merged with it. */
void runs_add(struct runs *r, struct clip clip, int64_t begin, int64_t end);

/* *ret is emptied first and is none of the operands. */
void runs_union(const struct runs *a, const struct runs *b, struct runs *ret);
void runs_both(const struct runs *a, const struct runs *b, struct runs *ret);
void runs_minus(const struct runs *a, const struct runs *b, struct runs *ret);
void runs_not(const struct runs *a, struct clip clip, struct runs *ret);

/* The smallest clip around all runs; empty (begin == end) without any. */
struct clip runs_hull(const struct runs *r);
