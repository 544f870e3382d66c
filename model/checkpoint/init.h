/* SPDX-License-Identifier: Apache-2.0 */
/* First weights: normal with mean 0; biases 0; LayerNorm gain 1 and shift 0; the padding token's row 0. */
#pragma once
#include "model/checkpoint/weights.h"

/* Gives every tensor without data its first value, as F32. Draws are Philox4x32-10 with the seed as key and
   the tensor's name in the counter: a tensor does not depend on which others there are. */
void weights_initialise(struct weights *w, const struct model_config *c, double deviation,
                        uint64_t seed);
