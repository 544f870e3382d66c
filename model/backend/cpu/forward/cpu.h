/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU as a backend: its state, and the functions of its row in the table. */
#pragma once
#include "model/backend/backend.h"
#include "model/backend/cpu/matmul/matmul.h"
#include "model/backend/cpu/ops/encoder_ops.h"
#include "model/backend/cpu/ops/train_ops.h"
#include "model/base/pool.h"

struct backend_state {
    struct matmul *matmul; /* and the weights of products */
    /* Row functions of this machine, looked up once: each lookup reads CPUID, which takes 20 us and more under a
       hypervisor. */
    const struct cpu_encoder_ops *ops;
    const struct cpu_train_ops *train_ops;
    struct pool kept; /* other weights */
};

/* True if the panels of cpu_batch.h support these layers; others go through model/graph. */
bool cpu_fuses(const struct arch *a);

int cpu_encode(const struct encode_request *r, struct error *e);
int cpu_head(const struct head_request *r, struct error *e);
int cpu_mean(const struct engine *g, struct engine_workspace *w, float *ret, struct error *e);

extern const struct training_backend cpu_training; /* model/backend/cpu/train/ */

void cpu_workspace_finish(struct backend_workspace *m);
