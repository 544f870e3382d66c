/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of inference during its pass through the encoder on a gpu_driver: every operation is over the whole batch.
   Training has a struct op_batch of its own (train/train.h). */
#pragma once
#include "model/backend/gpu/workspace.h"
#include "model/graph/graph.h"

struct op_batch {
    const struct encode_request *request;
    const struct engine *g;
    const struct encoder *c;
    const struct gpu_driver *driver;
    struct engine_workspace *workspace;
    struct backend_workspace *memory;
    struct batch_size size;
    double *seconds; /* null: not measured, and nobody waits between the operations */
    double since;    /* omp_get_wtime() when the phase began */
};

extern const struct ops gpu_ops; /* forward alone */

struct attention_call gpu_attention_call(const struct op_batch *p, uint32_t layer);
/* Layers reuse the workspace's buffers. */
struct layer_tape gpu_layer(const struct op_batch *p);
