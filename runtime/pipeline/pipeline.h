/* SPDX-License-Identifier: Apache-2.0 */
/* The way from a mask to a kernel file, in libmaskc only. runtime/load/ has the way from there. */
#pragma once
#include "runtime/artifact/artifact.h"
#include "runtime/pipeline/calibration.h"
#include "runtime/pipeline/measured_plans.h"

/* Mask to kernel file in memory: plan, emit, compile, write. The one pipeline, used by the command
   and the C API. `targets` are table rows; `progress` (null: none) receives each step's name. */
struct compile_request {
    const struct mask *mask;
    const uint32_t *order; /* [n], in which the mask is, for the kernel file; or null */
    const struct target *const *targets;
    uint32_t n_targets;
    struct kernel_request request;
    struct plan *planned;     /* null, or the caller's plan of the one target, or ... */
    struct plan_options plan; /* ... which plan of a portfolio, or ... */
    const struct measured_plans *measured; /* ... null, or those that were measured */
    const char *machine;                   /* as machine_choose has it, and ... */
    const struct calibration *calibration; /* ... null: none is stored */
    struct cache *cache;
    bool text_only; /* CUDA targets: no binary, only the text that the emulation compiles */
    void (*progress)(const char *step);
};
/* Fails where a machine is named whose kind (CPU or GPU) is that of no target. */
int compile_check_machine(const struct compile_request *r, struct error *e);
int kernel_compile(const struct compile_request *r, uint8_t **ret, uint64_t *ret_size,
                   struct error *e);
