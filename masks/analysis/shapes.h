/* SPDX-License-Identifier: Apache-2.0 */
/* Structures of a pattern besides full lines: blocks on the diagonal, permuted blocks, the ring of
   the star mask. This file finds them; the cover decides whether they are worth a term. */
#pragma once
#include "masks/analysis/analysis.h"

struct shapes {
    uint32_t local;       /* 0: none; else the largest b of local(b) that p contains */
    struct blocks blocks; /* k 0: none; never the identity (that is local) */
    bool ring;
};

enum { SHAPES_MAX_BLOCKS = 64 };

void shapes_find(struct shapes *ret, const struct pattern *p);
void shapes_finish(struct shapes *s);

static inline uint32_t block_size(uint32_t n, uint32_t k)
{
    return (n + k - 1) / k;
}

/* Neighbours in the circle of tokens 1 .. n - 1. */
static inline bool ring_test(uint32_t n, uint32_t i, uint32_t j)
{
    if (n < 3 || !i || !j || i == j)
        return false;
    uint32_t far = i > j ? i - j : j - i;
    return far == 1 || far == n - 2;
}
