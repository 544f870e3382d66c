/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "masks/base/error.h"
#include "tools/maskbert/options.h"

/* Refuses several processes by --ranks or by the variables of a launcher: each of them would train the whole run.
   --ranks 1 ignores the variables. */
int ranks_check(const struct options *o, struct error *e);
