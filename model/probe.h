/* SPDX-License-Identifier: Apache-2.0 */
/* Attention probabilities, which kernels never store: computed plainly from a layer's queries and keys, as an
   engine's watch shows them. */
#pragma once
#include "model/engine.h"

struct probe {
    const void *query, *key; /* row 0 of the head, in the engine's dtype */
    uint64_t row;            /* elements from one row to the next */
    uint32_t layer, head, n; /* n: rows of the sequence */
};

/* ret: f32 [n, n]. Row i has the probabilities of query i over all keys; inactive ones are 0. */
void probe_run(const struct engine *g, const struct probe *p, float *ret);
