/* SPDX-License-Identifier: Apache-2.0 */
/* Which CPU targets this machine runs: by CPUID, up to the level that MASKC_MAX_CPU names. */
#pragma once
#include "masks/base/error.h"
#include <stdbool.h>

#define MACHINE_CAP "MASKC_MAX_CPU"

/* The best x86-64 level for any kernel, that this process may really use: also what the system saves, and grants. */
const char *machine_level(void);
/* A CPU target's name. Where it is true, code of that target may run in this process. */
bool machine_runs(const char *target);
/* Rank of a target on this machine: the larger of two is faster. 0: it cannot run. */
int machine_rank(const char *target);
/* Level that MASKC_MAX_CPU names: higher levels count as missing. Null: no cap. */
const char *machine_cap(void);
/* Refuses a value of MASKC_MAX_CPU that names no level. Every level above x86-64-v2 counts as missing under it. */
int machine_check_cap(struct error *e);
