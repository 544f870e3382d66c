/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that train one model together: each works on its part of every batch, and sums are taken over all. A rank is a
   process, or whatever an implementation makes of it.

   All ranks call the same functions in the same order, with the same counts. A sum has the same bits on every rank.
   Functions return 0, or -1 with *e set. */
#pragma once
#include "masks/base/error.h"
#include <stdint.h>

struct comm {
    const char *name;
    uint32_t rank, size; /* rank < size */
    void *context;       /* the implementation's */
    /* x = the sum over ranks of x, in place. */
    int (*sum_f32)(const struct comm *c, float *x, uint64_t count, struct error *e);
    int (*sum_f64)(const struct comm *c, double *x, uint64_t count, struct error *e);
    int (*sum_u64)(const struct comm *c, uint64_t *x, uint64_t count, struct error *e);
};

extern const struct comm comm_alone; /* one rank */

/* Elements that are summed at a time: 16 MB. */
enum { COMM_BUCKET = 1 << 22 };

/* A barrier that hands on failure: with a result below 0 on any rank all return -1. *e is that of the rank's own failure,
   else says which rank failed. */
int comm_agree(const struct comm *c, int result, struct error *e);
