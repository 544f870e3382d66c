/* SPDX-License-Identifier: Apache-2.0 */
/* The loss of a request in float64, from the definition of each loss. Clarity before speed. */
#pragma once
#include "model/gradients/gradients.h"
#include "tests/model/random/plain_bert.h"

/* kept: [rows of all targets][2][H]: factors of dropout before the heads' linears, and before their dense layers; null: all are
   1. */
double plain_loss(const struct plain_bert *b, const struct gradients_request *r,
                  const float *kept);
/* The losses of a target whose logits are right (struct target_loss). Two equal tokens can have equal logits, of which f32 takes
   either as the larger one: so the first of the largest is right after `slack` was added to it. -1e-6: surely right ones; 1e-6:
   possibly right ones. */
uint32_t plain_right(const struct plain_bert *b, const struct gradients_request *r,
                     uint32_t target, double slack);
