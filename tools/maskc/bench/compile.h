/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that bench measures: compiled, and loaded on the device that the options name. */
#pragma once
#include "runtime/load/load.h"
#include "runtime/pipeline/pipeline.h"
#include "tools/maskc/options.h"

struct bench_compiler {
    const struct options *o;
    struct cache *cache;
    struct plan_options plan; /* of all that it compiles, dense too */
};

int bench_compile(const struct bench_compiler *c, const struct mask *m,
                  const struct target *target, const struct kernel_request *f,
                  struct maskc_kernel **ret, struct error *e);
/* The mask with everything on, of this length, for the same target and features. */
int bench_compile_dense(const struct bench_compiler *c, const struct maskc_kernel *like,
                        uint32_t length, struct maskc_kernel **ret, struct error *e);
/* The same mask and target with other features. */
int bench_compile_as(const struct bench_compiler *c, const struct maskc_kernel *like,
                     const struct kernel_request *f, struct maskc_kernel **ret,
                     struct error *e);
