/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "model/train/run/run.h"
#include "tools/maskbert/options.h"

/* What was given, checked, and the defaults for the rest. */
int pretrain_options(const struct options *o, struct run_options *ret, struct error *e);
/* How a mask is learned, or that none is. ret->rate is set. */
int learning_options(const struct options *o, struct run_options *ret, struct error *e);
/* The same of the options that stand for a step: no data, no run, no end. */
int training_options(const struct options *o, struct run_options *ret, struct error *e);
