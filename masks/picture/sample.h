/* SPDX-License-Identifier: Apache-2.0 */
/* A pattern as a small square of levels, taken from its runs: an n x n mask never exists. */
#pragma once
#include "masks/pattern.h"

/* level[size * size]: the share of active entries in each cell, 0..1; size is 1 .. n. Where size
   is n, a cell is an entry. Caller frees. */
float *pattern_sample(const struct pattern *p, uint32_t size);
