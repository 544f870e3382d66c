/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration's probes: our own kernels on small masks that between them do all that plans count, each
   timed pass by pass on one core. */
#pragma once
#include "gen/cost/fit.h"
#include "runtime/cache.h"
#include "runtime/calibration.h"

struct probe_time {
    char name[64], lowering[80];
    double seconds[PASSES];
    struct fit_row row[PASSES];
};

/* Times every probe for kernels of this type and returns how many; 0 with *e set. `row` is the machine
   that the target's kernels of this type are planned for. Every probe is timed at least once, again and
   again until so many seconds are over. With `soft` some have such a mask as well. The caller frees *ret. */
uint32_t probes_time(const struct machine *row, const struct target *t, enum abi_dtype dtype,
                     enum abi_soft soft, double seconds, struct cache *cache,
                     struct probe_time **ret, struct error *e);
