/* SPDX-License-Identifier: Apache-2.0 */
/* Value of each entry (query, key) of each head: measured attention, or probabilities of a learned mask. snap fits a
   mask to these values. */
#pragma once
#include "masks/mask.h"
#include <stddef.h>
#include <stdint.h>

struct importance {
    uint32_t layers, heads, n; /* each at least 1 */
    float *value;              /* [layers, heads, n, n], finite and not negative; owned */
};

/* [n, n] of one head: query i, key j at i * n + j. */
static inline const float *importance_head(const struct importance *p, uint32_t layer,
                                           uint32_t head)
{
    return p->value + ((size_t)layer * p->heads + head) * p->n * p->n;
}

/* One of zeros; refused where it is too large to hold (2^33 bytes). `name` is for the message. */
int importance_new(uint64_t layers, uint64_t heads, uint32_t n, const char *name,
                   struct importance *ret, struct error *e);

/* Refuses a value that is not finite or negative, and an importance without a value above zero. For those that do
   not come from importance_read. */
int importance_check(const struct importance *p, const char *name, struct error *e);
void importance_finish(struct importance *p); /* a zeroed one is fine */
