/* SPDX-License-Identifier: Apache-2.0 */
/* Correlations, with scipy's conventions: NaN where x or y is constant or there are fewer than two pairs. Values are
   finite. */
#pragma once
#include <stddef.h>

double score_pearson(const double *x, const double *y, size_t count);

/* Pearson's of the ranks; equal values share the mean of their ranks. */
double score_spearman(const double *x, const double *y, size_t count);
