/* SPDX-License-Identifier: Apache-2.0 */
/* The module Dense of sentence-transformers: y = f(W x + b), and with a residual y + x or y + R x. */
#pragma once
#include "masks/base/error.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum dense_activation { DENSE_IDENTITY, DENSE_TANH, DENSE_RELU, DENSE_GELU, DENSE_SIGMOID };

struct sentence_dense {
    uint32_t in, out;
    enum dense_activation activation;
    bool adds_input; /* a residual of x itself */
    float *weight;   /* [out, in] */
    float *bias;     /* [out], or null */
    float *residual; /* R [out, in], or null */
};

/* config.json and model.safetensors in the module's folder. Null with *e set. */
struct sentence_dense *sentence_dense_read(const char *folder, struct error *e);
/* The same from memory; path: of the tensors, for messages. */
struct sentence_dense *sentence_dense_parse(const json_t *config, const uint8_t *tensors,
                                            uint64_t size, const char *path, struct error *e);
void sentence_dense_destroy(struct sentence_dense *d); /* null is fine */

/* x [in] to y [out]. */
void sentence_dense_run(const struct sentence_dense *d, const float *x, float *y);
