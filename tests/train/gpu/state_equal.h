/* SPDX-License-Identifier: Apache-2.0 */
/* Do a device's loss and gradients equal the CPU's? Fails the test where they do not. */
#pragma once
#include "tests/train/subject.h"

/* The Euclidean norm of a - b, or of a where b is null, over the tensor. */
double piece_norm(const struct piece *p, const float *a, const float *b);

/* The scores' softmax does not see it: its gradient is 0, of which rounding is left. */
bool is_key_bias(const struct piece *p);

/* |got - truth| <= tolerance max(|truth|, 1e-3 of the largest |truth| in its layer), norms by tensor. */
void gradients_must_equal(const char *name, const struct train_state *s, const float *got,
                          const float *truth, double tolerance);

/* The relative error is at most the tolerance, and the counts are the same. */
void losses_must_equal(const char *name, const struct gradients_request *r,
                       const struct batch_loss *got, const struct batch_loss *truth,
                       double tolerance);
