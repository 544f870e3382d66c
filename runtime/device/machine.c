/* SPDX-License-Identifier: Apache-2.0 */
/* Which x86-64 level this machine has, by CPUID. The compilers' own checks (which also ask what the
   system saves on a context switch) know most features; the three or four that clang 14 does not
   know are read from CPUID: they need no state of their own. AMX does, and the system grants it to
   a process that asks. MASKC_MAX_CPU hides the levels above the one that it names. */
#include "runtime/device/machine.h"
#include <cpuid.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static bool saves_tiles(void)
{
    const unsigned osxsave = 1u << 27, tiles = 3u << 17;
    unsigned low, high;
    if (!(leaf_ecx(1) & osxsave))
        return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    (void)high;
    return (low & tiles) == tiles;
}

/* Asking again changes nothing; the answer holds for all threads, those to come too. */
static bool grants_tiles(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

static bool has_bf16(void)
{
    const unsigned vectors_bf16 = 1u << 5;
    unsigned a, b, c, d;
    return has_v4() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & vectors_bf16);
}

static bool has_amx(void)
{
    const unsigned tiles_bf16 = 1u << 22 | 1u << 24;
    unsigned a, b, c, d;
    return has_bf16() && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           (d & tiles_bf16) == tiles_bf16 && saves_tiles() && grants_tiles();
}

/* Where VDPBF16PS takes no longer than a multiply-add of floats: on AMD's from Zen 4 on. Intel's take
   twice as long at least. */
static bool is_amd(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0, &a, &b, &c, &d) && b == signature_AMD_ebx;
}

static bool always(void)
{
    return true;
}

/* The best first. A level that runs but is not worth it ranks behind the next one. */
static const struct {
    const char *name;
    bool (*has)(void), (*is_worth)(void);
} levels[] = {
    {"x86-64-amx", has_amx, always}, {"x86-64-bf16", has_bf16, is_amd},
    {"x86-64-v4", has_v4, always},   {"x86-64-v3", has_v3, always},
    {"x86-64-v2", has_v2, always},
};

enum { LEVELS = sizeof levels / sizeof *levels };

static int level_find(const char *name)
{
    int k = 0;
    while (k < LEVELS && strcmp(levels[k].name, name))
        k++;
    return k;
}

/* Value of MASKC_MAX_CPU; null: unset or empty. */
static const char *cap_text(void)
{
    const char *text = getenv(MACHINE_CAP);
    return text && *text ? text : NULL;
}

/* Index of the best level that the cap leaves. */
static int first_allowed(void)
{
    const char *text = cap_text();
    int k = text ? level_find(text) : 0;
    return k < LEVELS ? k : LEVELS - 1;
}

const char *machine_cap(void)
{
    return cap_text() ? levels[first_allowed()].name : NULL;
}

int machine_check_cap(struct error *e)
{
    const char *text = cap_text();
    if (!text || level_find(text) < LEVELS)
        return 0;
    return error_set(e, ERROR_INPUT,
                     MACHINE_CAP "=%.100s: expected x86-64-v2, x86-64-v3, x86-64-v4, "
                                 "x86-64-bf16 or x86-64-amx",
                     text);
}

static int rank_of(int k)
{
    __builtin_cpu_init();
    if (k < first_allowed() || !levels[k].has())
        return 0;
    return 2 * (LEVELS - k) - (levels[k].is_worth() ? 0 : 3);
}

int machine_rank(const char *target)
{
    int k = level_find(target);
    return k < LEVELS ? rank_of(k) : 0;
}

bool machine_runs(const char *target)
{
    return machine_rank(target) > 0;
}

const char *machine_level(void)
{
    int best = LEVELS - 1, most = 0;
    for (int k = 0; k < LEVELS; k++) {
        const int rank = rank_of(k);
        if (rank > most) {
            most = rank;
            best = k;
        }
    }
    return levels[best].name;
}
