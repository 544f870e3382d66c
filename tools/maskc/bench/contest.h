/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the command bench and its measurements. */
#pragma once
#include "tools/maskc/bench/bench.h"
#include "tools/maskc/bench/compile.h"

struct bench {
    const struct options *o;
    struct bench_compiler compiler;
    struct bench_result *result;
    uint32_t n_results, capacity;
    bool forward, backward;
    char device[128];
    uint32_t threads;
};

/* Measures the kernel, and adds a result for each pass. It takes the kernel. */
int bench_kernel(struct bench *b, struct maskc_kernel *k, const char *name, struct error *e);
