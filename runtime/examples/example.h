/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the examples: an exit with the library's own text, memory, random numbers, one launch. */
#pragma once
#include <maskc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void must(int code, const struct maskc_error *error)
{
    if (code == MASKC_OK)
        return;
    fprintf(stderr, "%s\n", error->text);
    exit(code);
}

/* Zeroed and aligned as the library asks for it. */
static inline void *allocate(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!p)
        exit(MASKC_UNAVAILABLE);
    return memset(p, 0, bytes);
}

/* A contiguous tensor: all strides 0. Numbers in -1 .. 1 that follow from the seed; seed 0: zeros. */
static inline struct maskc_tensor new_tensor(size_t elements, unsigned seed)
{
    struct maskc_tensor t = {.data = allocate(elements * sizeof(float))};
    float *x = t.data;
    for (size_t k = 0; seed && k < elements; k++) {
        seed = seed * 1664525u + 1013904223u;
        x[k] = (float)(seed >> 8) / (float)(1 << 23) - 1;
    }
    return t;
}

/* One pass. The workspace may be kept from launch to launch; here each has its own. */
static inline void run(const struct maskc_kernel *kernel, struct maskc_launch *launch,
                       enum maskc_pass pass)
{
    struct maskc_error error;
    launch->pass = pass;
    launch->workspace_bytes = maskc_workspace_bytes(kernel, launch);
    launch->workspace = allocate(launch->workspace_bytes);
    must(maskc_run(kernel, launch, &error), &error);
    free(launch->workspace);
}
