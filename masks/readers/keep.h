/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping a share of a head: entries sorted ascending by (value, i, j), the first
   floor((100 - percent) n^2 / 100) dropped. Percent counts to six decimals. */
#pragma once
#include "masks/pattern.h"

/* value[n * n] holds no NaN. */
struct pattern *keep_greatest(const double *value, uint32_t n, double percent);
