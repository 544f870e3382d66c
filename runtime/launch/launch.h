/* SPDX-License-Identifier: Apache-2.0 */
/* Launch of a loaded kernel. maskc.h describes the arguments. */
#pragma once
#include "runtime/load/load.h"

uint64_t launch_workspace(const struct maskc_kernel *k, const struct maskc_launch *l);
int launch_run(const struct maskc_kernel *k, const struct maskc_launch *l, struct error *e);
/* Adds to *launches how many kernels a GPU was given. */
int launch_run_counted(const struct maskc_kernel *k, const struct maskc_launch *l,
                       uint64_t *launches, struct error *e);
