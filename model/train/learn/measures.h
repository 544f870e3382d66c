/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a learned mask, for the log. */
#pragma once
#include "model/train/learn/alpha.h"

/* Over all entries of all heads (and layers, where each has its own), the border as 1; entropy: units. */
struct mask_measures {
    double l1;          /* sum of M, or of P: what the penalty counts */
    double density;     /* share of the entries that are on without noise */
    double entropy;     /* of a unit, mean, in nats */
    double p_diagonal;  /* mean of P where i = j */
    double p_neighbour; /* where |i - j| = 1 */
    double p_special;   /* where i or j is the first or the last position */
};

/* value: M or P of each unit. */
struct mask_measures measures_of(const struct alpha_shape *s, const float *alpha,
                                 const float *value);
