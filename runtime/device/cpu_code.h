/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the device "cpu": loaded code, and how a launch of it is shared among threads. */
#pragma once
#include "runtime/device/host.h"

typedef void entry_fn(const struct abi_args *a, u64 begin, u64 end, u8 *scratch);

struct device_code {
    void *library;
    const struct artifact_plan *plan;
    const struct mask *mask;
    const struct launch_record *record;
    entry_fn *forward[EMIT_MAX_PHASES], *backward[EMIT_MAX_PHASES];
};

/* Functions of struct device. */
int cpu_run(const struct device_code *c, const struct device_launch *l, struct error *e);
bool cpu_whole(const struct device_launch *l);
