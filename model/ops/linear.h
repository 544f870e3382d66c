/* SPDX-License-Identifier: Apache-2.0 */
/* A model's weights as a backend holds them. Memory belongs to the backend and lives as long as it; on a
   GPU pointers are the device's. */
#pragma once
#include "model/base/element.h"
#include "model/checkpoint/config.h"
#include <stdbool.h>

/* The activation that follows a product. */
enum after { AFTER_NONE, AFTER_GELU, AFTER_GELU_TANH, AFTER_RELU, AFTER_SILU, AFTER_TANH };

static inline enum after linear_after(enum activation a)
{
    static const enum after afters[ACTIVATION_COUNT] = {
        [ACTIVATION_GELU] = AFTER_GELU,
        [ACTIVATION_GELU_TANH] = AFTER_GELU_TANH,
        [ACTIVATION_RELU] = AFTER_RELU,
        [ACTIVATION_SILU] = AFTER_SILU,
    };
    return afters[a];
}

struct linear_shape {
    uint32_t in, out;
    enum element x, y; /* input (and weights), output: ELEMENT_F32 or ELEMENT_BF16 */
    enum after after;
};

/* y = after(x W^T + b): x [rows, in], W [out, in], y [rows, out]. */
struct linear {
    struct linear_shape shape;
    void *packed;                /* W as the backend's products want it */
    float *bias;                 /* [out] */
    const struct layout *layout; /* of `packed`; CPU only */
    void *fused_bias;            /* [out] of y's type; GPU only */
};

/* f32 weights as they lie in the model: element (o, i) at value[o * row + i * column], in elements. */
struct weight_view {
    const float *value; /* of an array of the backend (model/backend/training.h) */
    uint64_t row, column;
    bool on_host; /* value is host memory */
};

/* y = (x - mean) / sqrt(variance + eps) * gain + shift over `size` columns; the variance is biased. */
struct norm {
    uint32_t size;
    float eps;
    float *gain, *shift; /* [size] */
};

/* dW[o, i] += sum over rows of dY[row, o] X[row, i], in f32. dY [rows, out] and X [rows, in] are of one type, f32 or
   bf16, contiguous or with a row stride. */
struct weight_gradient {
    uint32_t in, out, rows;
    enum element type;
    const void *dy, *x;
    uint64_t dy_row, x_row; /* elements from row to row */
    float *dw;
    uint64_t dw_row;
};
