/* SPDX-License-Identifier: Apache-2.0 */
/* The rows below are all that is known of a target; whoever adds one adds a row. The templates'
   shape on it (rows of a row block, vector width, threads of a block) stands beside its name, so that
   planner, emission and compiler cannot disagree. */
#include "gen/target.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define KIB(x) ((x) * 1024)
const struct target targets[] = {
    /* name         kind         arch         machine       matrix       dots   rows  vector  threads  shared  ptx */
    {"x86-64-v2",   TARGET_CPU,  "x86-64-v2", "x86-sse",    NULL,        false, 32,     16,       0,        0, false},
    {"x86-64-v3",   TARGET_CPU,  "x86-64-v3", "x86-avx2",   NULL,        false, 32,     32,       0,        0, false},
    {"x86-64-v4",   TARGET_CPU,  "x86-64-v4", "x86-avx512", NULL,        false, 32,     64,       0,        0, false},
    {"x86-64-bf16", TARGET_CPU,  "x86-64-v4", "x86-avx512", "x86-bf16",  true,  32,     64,       0,        0, false},
    {"x86-64-amx",  TARGET_CPU,  "x86-64-v4", "x86-avx512", "x86-amx",   false, 32,     64,       0,        0, false},
    {"sm_80",       TARGET_CUDA, "sm_80",     "a100",       "a100-mma",   false, 32,      0,     128, KIB(163), false},
    {"sm_86",       TARGET_CUDA, "sm_86",     "a100",       "a100-mma",   false, 32,      0,     128,  KIB(99), false},
    {"sm_89",       TARGET_CUDA, "sm_89",     "a100",       "a100-mma",   false, 32,      0,     128,  KIB(99), false},
    {"sm_90a",      TARGET_CUDA, "sm_90a",    "h100",       "h100-mma",   false, 32,      0,     128, KIB(227), false},
    {"sm_100a",     TARGET_CUDA, "sm_100a",   "h100",       "h100-mma",   false, 32,      0,     128, KIB(227), false},
    {"sm_120",      TARGET_CUDA, "sm_120",    "h100",       "h100-mma",   false, 32,      0,     128,  KIB(99), false},
    {"compute_80",  TARGET_CUDA, "compute_80", "a100",      "a100-mma",   false, 32,      0,     128,  KIB(99), true},
    {NULL},
};
/* clang-format on */

static const char *const dtype_names[] = {
    [ABI_F32] = "f32",
    [ABI_BF16] = "bf16",
    [ABI_F16] = "f16",
    [ABI_TF32] = "tf32",
};

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

const char *dtype_name(enum abi_dtype dtype)
{
    return dtype_names[dtype];
}

uint32_t dtype_bytes(enum abi_dtype dtype)
{
    return dtype == ABI_F32 || dtype == ABI_TF32 ? 4 : 2;
}

int dtype_parse(const char *name, enum abi_dtype *ret, struct error *e)
{
    for (uint32_t k = 0; k < sizeof dtype_names / sizeof *dtype_names; k++) {
        if (!strcmp(dtype_names[k], name)) {
            *ret = (enum abi_dtype)k;
            return 0;
        }
    }
    return error_set(e, ERROR_INPUT, "unknown dtype '%.64s'; expected f32, tf32, bf16 or f16",
                     name);
}

static int check_lambda(double lambda, struct error *e)
{
    if (isfinite((float)lambda) && (float)lambda < 1)
        return 0;
    return error_set(e, ERROR_INPUT, "sparsegen needs a finite lambda below 1, not %g", lambda);
}

int transform_parse(const char *text, struct kernel_request *r, struct error *e)
{
    static const char sparsegen[] = "sparsegen=";
    if (!strcmp(text, "softmax")) {
        r->transform = ABI_SOFTMAX;
        r->lambda = 0;
        return 0;
    }
    const char *number = text + sizeof sparsegen - 1;
    char *end;
    if (strncmp(text, sparsegen, sizeof sparsegen - 1) || !*number)
        goto unknown;
    double lambda = strtod(number, &end);
    if (*end)
        goto unknown;
    if (check_lambda(lambda, e))
        return -1;
    r->transform = ABI_SPARSEGEN;
    r->lambda = (float)lambda;
    return 0;
unknown:
    return error_set(e, ERROR_INPUT,
                     "unknown transform '%.64s'; expected softmax or sparsegen=LAMBDA, "
                     "for example sparsegen=-4",
                     text);
}

static const char *const bias_names[] = {
    [ABI_BIAS_NONE] = "none",
    [ABI_BIAS_ADD] = "bias",
    [ABI_BIAS_SCALE] = "scale",
};

const char *bias_name(enum abi_bias bias)
{
    return bias_names[bias];
}

int bias_parse(const char *name, enum abi_bias *ret, struct error *e)
{
    for (uint32_t k = 0; k < sizeof bias_names / sizeof *bias_names; k++) {
        if (!strcmp(bias_names[k], name)) {
            *ret = (enum abi_bias)k;
            return 0;
        }
    }
    return error_set(e, ERROR_INPUT, "unknown soft mask '%.64s'; expected bias or scale", name);
}

int kernel_request_check(const struct kernel_request *r, const struct target *t,
                         struct error *e)
{
    if (r->dtype == ABI_TF32 && t->kind == TARGET_CPU)
        return error_set(e, ERROR_INPUT,
                         "tf32 is a GPU's; expected f32, bf16 or f16 for target %s", t->name);
    if (r->head_dim < 16 || r->head_dim > 256 || r->head_dim % 8)
        return error_set(
            e, ERROR_INPUT,
            "head dimension %u is not supported; expected a multiple of 8 in 16..256",
            r->head_dim);
    return r->transform == ABI_SPARSEGEN ? check_lambda((double)r->lambda, e) : 0;
}
