/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of model/ops/ops.h on the CPU, each over the whole batch: for layers whose blocks panels do not
   implement. Rows are divided as in panels, so that results are the same for any number of threads in training. */
#pragma once
#include "model/backend/cpu/forward/cpu_batch.h"

struct op_batch {
    const struct cpu_batch *batch;
    double since; /* omp_get_wtime() when the phase began */
};

extern const struct ops cpu_ops;

int plain_embed(struct op_batch *p, void *y, struct error *e);
int plain_linear(struct op_batch *p, const struct op_linear *o, struct error *e);
int plain_norm(struct op_batch *p, const struct op_norm *o, struct error *e);
int plain_close(struct op_batch *p, const struct op_close *o, struct error *e);
int plain_rotate(struct op_batch *p, uint32_t layer, void *x, bool back, struct error *e);
int plain_attend(struct op_batch *p, uint32_t layer, struct error *e);
int plain_lap(struct op_batch *p, enum engine_phase phase, struct error *e);

/* ---- shared with the backward pass (model/backend/cpu/train/plain_back.c) ---- */

/* A product compiled for whole panels and for the last one, which may be shorter. */
struct plain_product {
    const struct linear *l;
    const struct product *whole, *last;
};
/* `adds`: y += x W^T. The workspaces of all panels are made ready. */
int plain_find(const struct cpu_batch *p, const struct linear *l, bool adds,
               struct plain_product *ret, struct error *e);
int plain_multiply(const struct part *part, const struct plain_product *p, const void *x,
                   void *y);

/* Runs it for each panel, on one thread each. */
typedef int plain_step(const struct part *part, const void *op);
int plain_run(const struct cpu_batch *p, plain_step *step, const void *op, struct error *e);

/* y = x in f32: rows of the part. */
void plain_widen(const struct part *part, const void *x, uint32_t size, float *y);
