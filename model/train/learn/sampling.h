/* SPDX-License-Identifier: Apache-2.0 */
/* From alpha to what attention takes, and back from the gradient of that.

   With s = sigmoid((alpha + noise) / tau): a hard sample is M = 1 where s > 1/2, else 0, with the derivative of s
   (straight-through); a relaxed one is M = s. P is s without noise, tau 1. dM/dalpha = s (1 - s) / tau.

   The bias X: P's is c (P - 1/2) = (c / 2) tanh(alpha / 2); a relaxed sample's -c (1 - M); a hard one's 0 where M = 1,
   else -inf, or -c where off keys leak. dX/dM = c. An off key of -inf has dX = 0: only the penalty moves it.

   The penalty is lambda times the sum of M over all entries, so its gradient is lambda at each entry, on or off. */
#pragma once
#include "model/train/learn/alpha.h"

/* value: M or P; derivative: dM/dalpha. [units] each. noise null: none. */
struct samples_of_mask {
    float *value, *derivative;
};
void sampling_draw(const struct alpha_shape *s, const struct learn_options *o, double tau,
                   const float *alpha, const float *noise, const struct samples_of_mask *ret);
/* X [layers, heads, n, n]. P's comes of alpha, so that it keeps its digits; others of M. */
void sampling_bias(const struct alpha_shape *s, const struct learn_options *o,
                   const float *alpha, const float *value, float *ret);
/* d_bias: dX [layers, heads, n, n] or, where sampling_diagonals(), [layers, heads, 2n - 1]. Writes dL/dalpha. */
void sampling_back(const struct alpha_shape *s, const struct learn_options *o,
                   const float *derivative, const float *d_bias, float *ret);
/* The kernels' sums along diagonals are all that is needed: distances without a border. */
bool sampling_diagonals(const struct alpha_shape *s);
