/* SPDX-License-Identifier: Apache-2.0 */
/* Names of what is asked for, and what is refused. */
#include "gen/request.h"
#include "gen/target.h"
#include "masks/base/number.h"
#include <math.h>
#include <string.h>

static const char *const dtype_names[] = {
    [ABI_F32] = "f32",
    [ABI_BF16] = "bf16",
    [ABI_F16] = "f16",
    [ABI_TF32] = "tf32",
};

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
    double lambda = number_read(number, &end);
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
