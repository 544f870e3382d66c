/* SPDX-License-Identifier: Apache-2.0 */
/* The rows below are all that is known of a target; whoever adds one adds a row. The templates'
   shape on it (rows of a row block, vector width, threads of a block) stands beside its name, so that
   planner, emission and compiler cannot disagree. */
#include "gen/target.h"
#include <string.h>

/* clang-format off */
#define KIB(x) ((x) * 1024)
#define SM_90A "sm_90a",       TARGET_CUDA, "sm_90a",    "h100",       "h100-mma",   false, 32,      0,     128, KIB(227), false
const struct target targets[] = {
    /* name         kind         arch         machine       matrix       dots   rows  vector  threads  shared  ptx */
    {"x86-64-v2",   TARGET_CPU,  "x86-64-v2", "x86-sse",    NULL,        false, 32,     16,       0,        0, false},
    {"x86-64-v3",   TARGET_CPU,  "x86-64-v3", "x86-avx2",   NULL,        false, 32,     32,       0,        0, false},
    {"x86-64-v4",   TARGET_CPU,  "x86-64-v4", "x86-avx512", NULL,        false, 32,     64,       0,        0, false},
    {"x86-64-bf16", TARGET_CPU,  "x86-64-v4", "x86-avx512", "x86-bf16",  true,  32,     64,       0,        0, false},
    {"x86-64-amx",  TARGET_CPU,  "x86-64-v4", "x86-avx512", "x86-amx",   false, 32,     64,       0,        0, false},
    {"sm_80",       TARGET_CUDA, "sm_80",     "a100",       "a100-mma",   false, 32,      0,     128, KIB(163), false},
    {"sm_86",       TARGET_CUDA, "sm_86",     "rtx3090",    "rtx3090-mma",  false, 32,      0,     128,  KIB(99), false},
    {"sm_89",       TARGET_CUDA, "sm_89",     "rtx4090",    "rtx4090-mma",  false, 32,      0,     128,  KIB(99), false},
    {SM_90A},
    {"sm_100a",     TARGET_CUDA, "sm_100a",   "b200",       "b200-mma",   false, 32,      0,     128, KIB(227), false},
    {"sm_120",      TARGET_CUDA, "sm_120",    "rtx5090",    "rtx5090-mma",  false, 32,      0,     128,  KIB(99), false},
    {"compute_80",  TARGET_CUDA, "compute_80", "a100",      "a100-mma",   false, 32,      0,     128,  KIB(99), true},
    {NULL},
};
static const struct target sm_90a_without_maps = {SM_90A, .no_tensor_maps = true};
/* clang-format on */

const struct target *target_find(const char *name, struct error *e)
{
    char known[256] = "cpu, cuda";
    for (const struct target *t = targets; t->name; t++) {
        if (!strcmp(t->name, name))
            return t;
        strncat(known, ", ", sizeof known - strlen(known) - 1);
        strncat(known, t->name, sizeof known - strlen(known) - 1);
    }
    error_set(e, ERROR_INPUT, "unknown target '%.64s'; known are %s", name, known);
    return NULL;
}

const struct target *target_without_tensor_maps(const struct target *t)
{
    return strcmp(t->name, sm_90a_without_maps.name) ? t : &sm_90a_without_maps;
}
