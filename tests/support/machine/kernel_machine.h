/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that tests of kernels plan for. For sm_80 and its like prices by which small masks take global rows, parts of rows
   and merged classes: these tests need such plans, whatever the table of machines says. */
#pragma once
#include "gen/cost/machine.h"
#include "gen/target.h"

const struct machine *kernel_machine(const struct target *t, const struct kernel_request *r);
