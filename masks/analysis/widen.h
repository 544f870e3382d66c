/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns with a band of diagonals filled in, so that the structure around it shows: what was
   added is taken away again by the statement's `without`. */
#pragma once
#include "masks/analysis/analysis.h"

/* p and all (i, j) with low <= j - i <= high; never more runs than p has rows and runs. Null where
   that passes PATTERN_MAX_RUNS. */
struct pattern *pattern_fill(const struct pattern *p, struct offsets band);

/* True if p has no entry in that band. */
bool pattern_lacks(const struct pattern *p, struct offsets band);
