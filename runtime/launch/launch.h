/* SPDX-License-Identifier: Apache-2.0 */
/* Launch of a loaded kernel. maskc.h describes the arguments. */
#pragma once
#include "runtime/load/load.h"

uint64_t launch_workspace(const struct maskc_kernel *k, const struct maskc_launch *l);
int launch_run(const struct maskc_kernel *k, const struct maskc_launch *l, struct error *e);
/* For callers inside: what a launch of maskc.h does not have. */
struct launch_inside {
    uint64_t *launches;               /* null, or incremented for each GPU kernel launched */
    struct emulated_stream *emulated; /* the stream on the device "emulated"; or null */
};
int launch_run_inside(const struct maskc_kernel *k, const struct maskc_launch *l,
                      const struct launch_inside *inside, struct error *e);
