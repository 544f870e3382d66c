/* SPDX-License-Identifier: Apache-2.0 */
/* Launches as tests make them: the eight tensors of both passes, and both passes run. */
#pragma once
#include "runtime/maskc.h"
#include <stddef.h>

enum launch_tensor { T_Q, T_K, T_V, T_GRAD, INPUTS, T_O = INPUTS, T_DQ, T_DK, T_DV, TENSORS };

/* A launch over such tensors, in that order; all else is 0. */
struct maskc_launch launch_over(const struct maskc_tensor t[TENSORS], float *lse);
/* The same tensor in place of each, for who looks at none. */
struct maskc_launch launch_over_one(struct maskc_tensor t, float *lse);
/* Forward and backward in a workspace of their own; fails the test on an error. */
void launch_both(const struct maskc_kernel *k, struct maskc_launch l);

/* Tensors of float, one allocation each: inputs are numbers, outputs NaN. */
struct batch {
    float *x[TENSORS], *lse;
};

struct batch batch_new(size_t elements, size_t rows);
void batch_free(struct batch *b);
/* A launch over them from element `at` on, with their strides left to it. */
struct maskc_launch batch_launch(const struct batch *b, size_t at, float *lse);
