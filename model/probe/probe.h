/* SPDX-License-Identifier: Apache-2.0 */
/* Attention probabilities, which kernels never store: computed plainly from what an engine's watch is shown. */
#pragma once
#include "model/engine/engine.h"

/* A head of one sequence. */
struct probe {
    const struct engine_layer *seen;
    uint64_t first;   /* the sequence's first row */
    uint32_t head, n; /* n: rows of the sequence */
};

/* -1: scores of the model are more than products of queries and keys. */
int probe_check(const struct engine *g, struct error *e);
/* Its rows out of query, key or value: f32 [n, head_dim], which the caller frees. */
float *probe_rows(const struct engine *g, const struct probe *p, const void *of);

/* ret: f32 [n, n]. Row i has the probabilities of query i over all keys; inactive ones are 0. */
void probe_run(const struct engine *g, const struct probe *p, float *ret);
