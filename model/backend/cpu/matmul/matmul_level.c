/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that oneDNN uses: those of the machine, up to the level that MASKC_MAX_CPU names; and whether products
   of bf16 are among them. An instruction set's number has the bits of those that it includes. */
#include "model/backend/cpu/matmul/matmul_engine.h"
#include "runtime/device/machine.h"
#include <string.h>

static const struct {
    const char *level;
    dnnl_cpu_isa_t isa;
} isas[] = {
    {"x86-64-v2", dnnl_cpu_isa_sse41},
    {"x86-64-v3", dnnl_cpu_isa_avx2},
    {"x86-64-v4", dnnl_cpu_isa_avx512_core},
    {"x86-64-bf16", dnnl_cpu_isa_avx512_core_bf16},
    {"x86-64-amx", dnnl_cpu_isa_avx512_core_amx},
};

enum { ISAS = sizeof isas / sizeof *isas };

static bool includes(dnnl_cpu_isa_t all, dnnl_cpu_isa_t part)
{
    return ((unsigned)all & (unsigned)part) == (unsigned)part;
}

/* The library accepts a limit only before its first other call. A later one must find the limit kept. */
static int limit(const char *level, dnnl_cpu_isa_t isa, struct error *e)
{
    dnnl_status_t s = dnnl_set_max_cpu_isa(isa);
    if (!s || includes(isa, dnnl_get_effective_cpu_isa()))
        return 0;
    return error_set(e, ERROR_UNAVAILABLE,
                     MACHINE_CAP "=%s: this oneDNN cannot be limited; unset the variable",
                     level);
}

int matmul_limit(struct error *e)
{
    const char *level = machine_cap();
    if (machine_check_cap(e) < 0)
        return -1;
    for (int k = 0; level && k < ISAS; k++)
        if (!strcmp(isas[k].level, level))
            return limit(level, isas[k].isa, e);
    return 0;
}

/* Below avx512_core_bf16 the library refuses bf16, or emulates it with more instructions than f32 needs. Where bf16 takes longer than f32
   with its own instructions too (Intel's without AMX), machine_level() is below it. */
bool matmul_multiplies_bf16(void)
{
    const dnnl_cpu_isa_t needed = dnnl_cpu_isa_avx512_core_bf16;
    const char *level = machine_level();
    for (int k = 0; k < ISAS; k++)
        if (!strcmp(isas[k].level, level))
            return includes(isas[k].isa, needed) &&
                   includes(dnnl_get_effective_cpu_isa(), needed);
    return false;
}
