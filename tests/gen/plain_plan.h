/* SPDX-License-Identifier: Apache-2.0 */
/* A second judge of plans beside plan_check: a plain decoder that follows templates/abi.h word by
   word over n x n counters. */
#pragma once
#include "gen/plan/plan.h"

/* Is every active entry visited once, no other one, and every row owned once? */
bool plain_equal(const struct plan *p, const struct plan_pass *t, const struct mask *m,
                 bool transposed);
