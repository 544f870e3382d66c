/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "tools/maskbert/options.h"

/* maskbert eval --task. Prints to stdout. */
int eval_task(const struct options *o, struct error *e);
