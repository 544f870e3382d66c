/* SPDX-License-Identifier: Apache-2.0 */
/* An encoder in float64, one sequence at a time, from the definition of its blocks: the judge of the engine. */
#pragma once
#include "masks/mask.h"
#include "model/engine/engine.h"

struct plain_bert {
    const struct model_config *config;
    const struct weights *weights;
    const struct mask *mask; /* null: dense */
    bool sparsegen;
    double lambda;
    const struct training_device *device; /* where training took the weights over; else null */
};

/* A tensor in f32; caller frees. */
float *plain_tensor(const struct plain_bert *b, enum parameter_id id, uint32_t layer);

/* The last hidden states [count, H]; caller frees. */
double *plain_hidden(const struct plain_bert *b, const struct sequence *s);
/* The pooler of one row [H] with its tanh or ReLU, and the logits of the words for it. Caller frees. */
double *plain_pooled(const struct plain_bert *b, const double *x);
double *plain_words(const struct plain_bert *b, const double *x);
