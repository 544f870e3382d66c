/* SPDX-License-Identifier: Apache-2.0 */
/* How far a run is, by steps or by time. */
#pragma once
#include "model/train/run/run_setup.h"

double run_share(const struct run *r); /* 0 to 1 */
bool run_is_done(const struct run *r);
/* The learning rate of a step whose peak is `peak`. */
double run_rate(const struct run *r, uint64_t step, double peak);
