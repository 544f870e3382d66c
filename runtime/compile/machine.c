/* SPDX-License-Identifier: Apache-2.0 */
/* Which x86-64 level this machine has, by CPUID. The compilers' own checks (which also ask what the
   system saves on a context switch) know most features; the three or four that clang 14 does not
   know are read from CPUID: they need no state of their own. */
#include "runtime/compile/compile.h"
#include <cpuid.h>
#include <string.h>

static unsigned leaf_ecx(unsigned leaf)
{
    unsigned a, b, c = 0, d;
    return __get_cpuid(leaf, &a, &b, &c, &d) ? c : 0;
}

static bool has_v2(void)
{
    const unsigned cx16 = 1u << 13, lahf = 1u << 0;
    return __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.2") &&
           __builtin_cpu_supports("popcnt") && (leaf_ecx(1) & cx16) &&
           (leaf_ecx(0x80000001) & lahf);
}

static bool has_v3(void)
{
    const unsigned movbe = 1u << 22, f16c = 1u << 29, lzcnt = 1u << 5;
    return has_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
           (leaf_ecx(1) & movbe) && (leaf_ecx(1) & f16c) && (leaf_ecx(0x80000001) & lzcnt);
}

static bool has_v4(void)
{
    return has_v3() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

static const struct {
    const char *name;
    bool (*has)(void);
} levels[] = {
    {"x86-64-v4", has_v4},
    {"x86-64-v3", has_v3},
    {"x86-64-v2", has_v2},
};

enum { LEVELS = sizeof levels / sizeof *levels };

bool machine_runs(const char *target)
{
    __builtin_cpu_init();
    for (int k = 0; k < LEVELS; k++)
        if (!strcmp(levels[k].name, target))
            return levels[k].has();
    return false;
}

const char *machine_cpu_target(void)
{
    for (int k = 0; k < LEVELS; k++)
        if (machine_runs(levels[k].name))
            return levels[k].name;
    return levels[LEVELS - 1].name;
}
