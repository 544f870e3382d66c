/* SPDX-License-Identifier: Apache-2.0 */
/* Where a run that learns a mask fixes it, compiles it, and goes on with the weights alone. */
#pragma once
#include "model/train/run/run_setup.h"

/* True if the mask was fixed by then: the kernels are those of the mask in the run's folder. */
bool run_has_settled(const struct run *r, const struct snapshot *s);
/* The last step that learns the mask: there the temperature is tau_end. */
uint64_t run_learning_steps(const struct run *r);
/* Before the first step: ERROR_FALSE if not even an empty mask is within the share of dense's time. */
int run_settle_check(const struct run *r, struct error *e);
/* Before each step: fixes the mask where it is time. Saves the state if that fails, so that --resume can go on. */
int run_settle(struct run *r, struct error *e);
/* Predicted seconds of attention in a step, under the mask without noise at the start of the last step. NaN in steps
   that do not ask for it. */
int run_price(struct run *r, double *ret, struct error *e);
