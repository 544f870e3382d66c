/* SPDX-License-Identifier: Apache-2.0 */
/* A device that only writes down what it is handed, a small kernel on it, and a launch that is right: for
   tests of launches. */
#pragma once
#include "runtime/load/load.h"
#include "tests/runtime/fixture.h"

enum { MOST_LAUNCHES = 64 };

struct device_code {
    struct device_launch seen[MOST_LAUNCHES];
    uint32_t count;
};

enum { N = 40, HEADS = 3, D = 64, BATCH = 2 };

struct paper {
    struct fixture *file;
    struct device_code code;
    struct maskc_kernel kernel;
    struct maskc_launch launch;
    uint8_t *storage; /* stands for every tensor; the paper device never touches it */
};

struct paper *paper_new(bool backward);
void paper_free(struct paper *b);
/* The launch, which must succeed. */
void paper_run(struct paper *b);
/* After the kernel's features have changed. */
void paper_more_workspace(struct paper *b);
