/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of a linear's weights as a list of products, for any backend. */
#pragma once
#include "model/gradients/state.h"
#include "model/ops/attention.h"
#include "model/ops/ops.h"

/* The gradient of a parameter; null: the model has none. */
float *train_state_gradient(const struct train_state *s, enum parameter_id id, uint32_t layer);

/* A linear on its way back. */
struct linear_gradients {
    const struct train_state *state;
    const struct attention *attention; /* whose heads may be padded */
    const struct op_parameters *parameters;
    const struct linear_shape *shape;
    uint32_t rows;
    const void *x, *dy; /* [rows, in], [rows, out] of the shape's x */
};
/* A product for each matrix, or for each head of it where heads are padded. The caller frees the list. */
struct weight_gradient *linear_gradients_list(const struct linear_gradients *l,
                                              uint32_t *ret_count);
