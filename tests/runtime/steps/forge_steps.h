/* SPDX-License-Identifier: Apache-2.0 */
/* Lies told in kernel files with steps whose checksum is right. */
#pragma once
#include "gen/plan/plan.h"
#include "tests/runtime/forge.h"

/* A kernel file of cuda_hopper with made-up code. */
struct step_ground {
    struct mask *mask;
    struct plan *plan;
    uint8_t *bytes;
    uint64_t size;
};

/* The file of mask `k` of a table: 0 causal and a row, 1 with global rows, 2 with gathers. */
struct step_ground step_ground_make(uint32_t k);
void step_ground_finish(struct step_ground *g);
/* Tells each lie in each file that it can be told in. All must be refused, each at least once. */
void forge_steps(const struct lie *lies, size_t count);
