/* SPDX-License-Identifier: Apache-2.0 */
/* From a prepared expression to a pattern, row by row. */
#pragma once
#include "masks/language/syntax.h"

/* Null with *e set where the mask would have more than PATTERN_MAX_RUNS runs, or runs that this
   machine's memory does not hold (ERROR_UNAVAILABLE): known from a sample of rows, before memory is
   filled. */
struct pattern *node_evaluate(struct node *root, uint32_t n, const struct script *s,
                              struct error *e);
