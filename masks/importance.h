/* SPDX-License-Identifier: Apache-2.0 */
/* How much each entry (query, key) of each head is worth: attention that was measured, or the probabilities of a
   learned mask. What snap fits a mask to. */
#pragma once
#include <stddef.h>

#include "masks/load.h"

struct importance {
    uint32_t layers, heads, n; /* each at least 1 */
    float *value;              /* [layers, heads, n, n], finite and not negative; owned */
};

static inline const float *importance_head(const struct importance *p, uint32_t layer,
                                           uint32_t head)
{
    return p->value + ((size_t)layer * p->heads + head) * p->n * p->n;
}

/* The array of r->name (.npy, or the tensor of a .safetensors): floats [n,n], [H,n,n] or [L,H,n,n], booleans and
   integers (1 where active, else 0), or with r->dam the parameters of a learned mask, as probabilities. r->heads
   repeats a one-head array, r->layer takes one layer, r->n crops. Refused with one line: a NaN, an infinite or
   negative value (its place is told), another number of heads than asked, no value above zero. */
int importance_read(const struct mask_request *r, struct importance *ret, struct error *e);
void importance_finish(struct importance *p); /* a zeroed one is fine */
