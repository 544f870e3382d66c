/* SPDX-License-Identifier: Apache-2.0 */
/* Plans whose kernels have a shape that the test names, in place of the cheapest one (gen/family/step_shape.h). */
#pragma once
#include "gen/plan/plan.h"

/* Rebuilds the steps of each pass whose family has a shape of that name, "narrow", and checks the plan against the mask; a
   pass without one keeps its shape. Fails the test where no pass has it. Null: nothing changes. */
void plan_take_shape(struct plan *p, const struct mask *m, const char *name);
