/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "model/train/run/run.h"
#include "tools/maskbert/options.h"

/* Checks the given options and sets the defaults of the rest. */
int pretrain_options(const struct options *o, struct run_options *ret, struct error *e);
/* Sets the way to learn a mask, or none, and ret->rate. */
int learning_options(const struct options *o, struct run_options *ret, struct error *e);
/* Like pretrain_options, for options of a step only: no data, no run, no end. */
int training_options(const struct options *o, struct run_options *ret, struct error *e);
