/* SPDX-License-Identifier: Apache-2.0 */
/* The probabilities that kernels never write down, for those who want to look at them: computed plainly
   from the queries and keys of a layer that an engine's watch shows. */
#pragma once
#include "model/engine.h"

struct probe {
    const void *query, *key; /* row 0 of the head, in the engine's dtype */
    uint64_t row;            /* elements from one row to the next */
    uint32_t layer, head, n; /* n: rows of the sequence */
};

/* ret: f32 [n, n], row i the probabilities of query i over all keys, zero where the mask is. */
void probe_run(const struct engine *g, const struct probe *p, float *ret);
