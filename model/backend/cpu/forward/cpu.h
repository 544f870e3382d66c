/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU as a backend: its state, and the functions of its row in the table. */
#pragma once
#include "model/backend/backend.h"
#include "model/backend/cpu/matmul/matmul.h"
#include "model/backend/cpu/ops/encoder_ops.h"
#include "model/base/pool.h"

struct backend_state {
    struct matmul *matmul; /* and the weights of products */
    const struct cpu_encoder_ops *ops;
    struct pool kept; /* other weights */
};

/* Whether the panels of cpu_batch.h know these layers; others go through model/graph. */
bool cpu_fuses(const struct arch *a);

int cpu_encode(const struct encode_request *r, struct error *e);
int cpu_head(const struct head_request *r, struct error *e);
int cpu_mean(const struct engine *g, struct engine_workspace *w, float *ret, struct error *e);

struct backend_training *cpu_training_new(const struct engine *g);
void cpu_training_destroy(struct backend_training *m);
int cpu_train(const struct gradients_request *r, struct backend_training *m,
              struct batch_loss *loss, struct error *e);
char *cpu_training_identity(const struct engine *g);
int cpu_training_memory(const struct engine *g, const struct gradients_sizes *s,
                        struct gradients_memory *ret, struct error *e);
void cpu_training_attention(const struct backend_training *m, struct gradients_array *ret);

void cpu_workspace_finish(struct backend_workspace *m);
