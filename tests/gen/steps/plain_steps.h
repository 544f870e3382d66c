/* SPDX-License-Identifier: Apache-2.0 */
/* A second judge of steps beside plan_check: a plain decoder that follows templates/abi.h word by word over n x n
   counters. */
#pragma once
#include "gen/plan/plan.h"

/* True if the steps of the pass visit every active entry once and no other one, for the rows that items own, and every row
   has one group. */
bool plain_steps_equal(const struct plan *p, enum machine_pass pass, const struct mask *m);
