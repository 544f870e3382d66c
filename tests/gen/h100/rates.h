/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the machine table of the kernels that were timed on an H100 (tests/results/h100-b84ec2a). They stay as they are
   when kernels and the rows of gen/cost/machines.c change. */
#pragma once
#include "gen/cost/machine.h"

enum { H100_F32, H100_MMA, H100_ROWS };
/* Rates that chose what was timed: those of revision b84ec2a, before any GPU. */
extern const struct machine h100_chose[H100_ROWS];
/* Rates fitted to the times. */
extern const struct machine h100_fitted[H100_ROWS];
