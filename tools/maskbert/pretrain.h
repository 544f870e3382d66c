/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "model/train/run.h"
#include "tools/maskbert/options.h"

/* What was given, checked, and the defaults for the rest. */
int pretrain_options(const struct options *o, struct run_options *ret, struct error *e);
