/* SPDX-License-Identifier: Apache-2.0 */
/* Progress and speed: the finished share of a run, running means of the last steps. */
#pragma once
#include "model/train/run/run_setup.h"

/* Running means for the progress lines; each process starts its own. */
struct pace {
    double loss, mean[TARGETS_MOST], tokens, flops, seconds; /* sums with weights that fade */
    double weight;
    uint64_t steps;
};

void pace_keep(struct pace *p, const struct step_result *s, double flops, double seconds);
/* Means of the targets' losses. */
void pace_means(const struct pace *p, double ret[TARGETS_MOST]);

/* Progress of a run, by steps or by time. */
double run_share(const struct run *r); /* 0 to 1 */
bool run_is_done(const struct run *r);
/* Learning rate at `step` of a schedule that peaks at `peak`. */
double run_rate(const struct run *r, uint64_t step, double peak);
