/* SPDX-License-Identifier: Apache-2.0 */
/* Running means of the last steps. */
#pragma once
#include "model/train/step/trainer.h"

/* Running means of what people look at; they begin anew with each process. */
struct pace {
    double loss, mean[TARGETS_MOST], tokens, flops, seconds; /* sums with weights that fade */
    double weight;
    uint64_t steps;
};

void pace_keep(struct pace *p, const struct step_result *s, double flops, double seconds);
/* Of the targets' losses. */
void pace_means(const struct pace *p, double ret[TARGETS_MOST]);
