/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel under test: compiled for one target and loaded on the device that runs it here. CUDA
   targets run emulated, their code never compiled for a GPU, so that no NVRTC is needed. */
#pragma once
#include "masks/mask.h"
#include "runtime/base/cache.h"
#include "runtime/load/load.h"
#include "runtime/pipeline/pipeline.h"

/* The cache of compiled code: $XDG_CACHE_HOME as the build sets it, else a temporary folder that
   subject_finish removes. */
struct cache *subject_start(void);
void subject_finish(struct cache *cache);

/* The x86-64 levels that this CPU runs and then sm_80; returns how many. Where AMX alone is absent there
   is a row that runs the kernels of x86-64-amx with tile instructions in software (tests/support/tiles). */
uint32_t subject_targets(const struct target **ret, uint32_t storage);
/* Whether the text of such a kernel is that of the level below, which subject_targets lists too: on a CPU without work
   for the matrix unit. One of the two is enough. */
bool subject_repeats(const struct target *t, const struct kernel_request *f);
/* Name of the target in messages. */
const char *subject_name(const struct target *t);

/* A loaded kernel, or the test fails. */
struct maskc_kernel *subject_load(const struct mask *m, const struct target *t,
                                  const struct kernel_request *f, struct cache *cache);
/* The same of a request for one target. */
struct compile_request;
struct maskc_kernel *subject_load_request(const struct compile_request *r);

/* One head from an expression or a gallery name, or the test fails. */
struct mask *subject_mask(const char *name, uint32_t n);

/* Runs the problem forward and backward and prints what is out of tolerance; 0 where nothing is. */
struct problem;
uint32_t subject_check(const struct maskc_kernel *k, const struct problem *p, bool backward,
                       const char *what);
