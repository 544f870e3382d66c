/* SPDX-License-Identifier: Apache-2.0 */
/* Calibration's probes: our own kernels on small masks that between them do all that plans count, each
   timed pass by pass on one core, or on a GPU. */
#pragma once
#include "gen/cost/fit.h"
#include "runtime/base/cache.h"
#include "runtime/pipeline/calibration.h"

struct probe_time {
    char name[64], lowering[80];
    double seconds[PASSES];
    struct fit_row row[PASSES];
};

/* The probes for kernels of one type. `row` is the machine that such kernels of the target are planned
   for; with `bias` (on a CPU) some have a bias as well. `device` is "cpu", "cuda", "cuda:1". What is
   given must outlive it. */
struct probes *probes_new(const struct machine *row, const struct target *t,
                          enum abi_dtype dtype, enum abi_bias bias, const char *device,
                          struct cache *cache);
void probes_destroy(struct probes *p); /* null is fine */

/* Plans and compiles all of several. 0 or -1 with *e set. */
int probes_open(struct probes *const *list, uint32_t lists, struct error *e);

/* Times every probe at least once, again and again until so many seconds are over. */
int probes_time(struct probes *p, double seconds, struct error *e);

double probes_wake(const struct probes *p);   /* machine.wake of a CPU, once timed */
double probes_launch(const struct probes *p); /* seconds of a GPU's, once timed */
uint32_t probes_count(const struct probes *p);
const struct probe_time *probes_times(const struct probes *p); /* as many, p's */
