/* SPDX-License-Identifier: Apache-2.0 */
/* First weights: normal with mean 0, biases 0, LayerNorm 1 and 0, the padding token's row 0. */
#pragma once
#include "model/checkpoint/weights.h"

/* Gives every tensor that has no data its first value, as F32. Draws are Philox4x32-10 with the seed
   as key and the tensor's name in the counter, so that a tensor is the same whatever else there is. */
void weights_initialise(struct weights *w, const struct model_config *c, double deviation,
                        uint64_t seed);
