/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a step of pre-training, predicted from sizes and measured. */
#pragma once
#include "model/gradients/gradients.h"

struct memory_request {
    uint32_t batch, accumulate; /* sequences of a step; parts that they are taken in, 0: 1 */
    uint32_t length;            /* tokens of each sequence */
    enum recompute recompute;
    double hidden_dropout, attention_dropout; /* of a measured step */
};

/* Bytes. */
struct train_memory {
    uint64_t parameters;  /* f32, and what is packed for the products */
    uint64_t gradients;   /* f32; with --accumulate also those that parts are added up in */
    uint64_t optimizer;   /* two moments, f32 */
    uint64_t activations; /* all that a step works in but attention's own */
    uint64_t attention;   /* LSE and the kernels' workspace */
};
uint64_t train_memory_total(const struct train_memory *m);

/* The sequences and tokens of the largest part of the batch. Fails where they are too many, or too long for the
   model. */
int train_memory_sizes(const struct engine *g, const struct memory_request *r,
                       struct gradients_sizes *ret, struct error *e);

/* From sizes alone: the engine may be an outline. */
int train_memory_predict(const struct engine *g, const struct memory_request *r,
                         struct train_memory *ret, struct error *e);

/* Loads the model in a child process, runs one step on random tokens there (forward, backward, optimiser), and
   reads what is resident. Gradients, moments and attention's arrays are counted page by page; parameters are what
   loading added beside them, activations what the step added at its peak. Only anonymous memory counts: not the
   programs' code, nor mapped files. Of a GPU what the device allocated is counted, by bytes as asked for: neither its
   code nor attention's tables.
   The process must not have run OpenMP before: its threads do not survive into a child. */
struct engine_options;
int train_memory_measure(const char *folder, const struct engine_options *o,
                         const struct memory_request *r, struct train_memory *ret,
                         struct error *e);
