/* SPDX-License-Identifier: Apache-2.0 */
/* The noise of a step: G1 - G2, two Gumbel variables, which is logistic: log(u / (1 - u)). One draw for each unit, a
   function of (seed, step) and the unit; the two entries of a symmetric unit share it. */
#pragma once
#include "model/train/learn/alpha.h"

void noise_draw(const struct alpha_shape *s, uint64_t seed, uint64_t step, float *ret);
