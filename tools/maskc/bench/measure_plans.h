/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of a portfolio beside each other (bench --measure-plans). */
#pragma once
#include "gen/plan/plan.h"
#include "tools/maskc/bench/compile.h"
#include "tools/reference/check.h"

struct plan_race {
    const char *name; /* of the mask, as it was given */
    const struct bench_compiler *compiler;
    const struct mask *mask;
    const struct target *target;
    const struct kernel_request *request;
    const struct machine *machine;
    const struct kernel_family *family; /* null, or that of all plans */
    struct problem problem;             /* what is launched */
    uint32_t plans;                     /* how many, at most ROUNDS_CONTENDERS */
};

/* Times them in both passes, tells each on stderr, stores the fastest (runtime/pipeline/measured_plans.h) and returns it. */
int measure_plans(const struct plan_race *race, struct plan_choice *ret, struct error *e);
