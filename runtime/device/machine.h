/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPU targets this machine runs, by CPUID. */
#pragma once
#include <stdbool.h>

/* The best x86-64 level for any kernel, that this process may really use: also what the system saves, and grants. */
const char *machine_level(void);
/* A CPU target's name. Where it is true, code of that target may run in this process. */
bool machine_runs(const char *target);
/* How good it is, above 0: of two the larger one is faster. 0: it cannot run. */
int machine_rank(const char *target);
