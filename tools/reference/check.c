/* SPDX-License-Identifier: Apache-2.0 */
/* One problem checked: the kernel's outputs against float64, within what the contract allows. */
#include "tools/reference/check.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double tolerance_f32 = 1e-5;

/* Half a unit in the last place of a mantissa near 2: the least tolerance. */
static double half_unit(enum abi_dtype dtype)
{
    return dtype == ABI_BF16 ? 0x1p-9 : 0x1p-12; /* f16 and tf32 have 11 bits */
}

struct checked {
    const char *label;
    const double *kernel, *truth, *plain;
    uint64_t size;
    uint32_t row; /* elements of a row; 0: rows are not checked */
    bool floats;  /* f32 whatever the type: not rounded */
    double parts; /* if a difference of parts: the parts' norm; else 0 */
};

static struct check_result check_one(const struct checked *x, enum abi_dtype dtype,
                                     const char *name)
{
    struct check_result r = {.tolerance = tolerance_f32};
    if (x->plain)
        r.tolerance = fmax(1.5 * error_of_difference(x->plain, x->truth, x->size, x->parts),
                           x->floats ? tolerance_f32 : half_unit(dtype));
    r.error = error_of_difference(x->kernel, x->truth, x->size, x->parts);
    r.ok = r.error <= r.tolerance;
    snprintf(r.name, sizeof r.name, "%s: %s", name, x->label);
    return r;
}

/* The rows of the same, if the whole is right. Worst rows of kernels are 0.5 to 1.2 times those of the plain way. */
static void check_rows(const struct checked *x, enum abi_dtype dtype, struct check_result *r)
{
    if (!r->ok || !x->row || !x->plain)
        return;
    const double plain = error_of_rows(x->plain, x->truth, x->size, x->row),
                 error = error_of_rows(x->kernel, x->truth, x->size, x->row),
                 tolerance = 4 * fmax(plain, half_unit(dtype));
    if (error <= tolerance)
        return;
    r->ok = false;
    r->error = error;
    r->tolerance = tolerance;
    snprintf(r->name + strlen(r->name), sizeof r->name - strlen(r->name), ", the worst row");
}

void check_push(struct check_result r, struct check_result **ret, uint32_t *ret_count)
{
    *ret = memory_resize(*ret, *ret_count + 1, sizeof **ret);
    (*ret)[(*ret_count)++] = r;
}

int check_problem(const struct check *check, struct check_result **ret, uint32_t *ret_count,
                  struct error *e)
{
    const struct problem *p = check->problem;
    struct problem_data *a = problem_inputs(p), *b = problem_data_copy(p, a), *c = NULL;
    int code = kernel_run_problem(check->kernel, p, a, check->backward, check->threads, e);
    if (code) {
        error_prefix(e, "%s", check->name);
        goto out;
    }
    reference_run(p, b, check->backward);
    if (p->dtype != ABI_F32) {
        c = problem_data_copy(p, b);
        reference_plain(p, c, check->backward);
    }
    const uint64_t keys = problem_key_elements(p), rows = problem_keep_sample(p, a);
    problem_keep_sample(p, b);
    if (c)
        problem_keep_sample(p, c);
    uint64_t bias = problem_bias_elements(p), diagonal = problem_diagonal_elements(p);
    /* sparsegen's dS jumps where a key joins the support: rounded scores may move one across */
    const uint32_t row = p->dtype == ABI_BF16 || p->dtype == ABI_F16 ? p->head_dim : 0,
                   smooth = p->transform == ABI_SOFTMAX ? row : 0;
    const struct checked all[] = {
        {"o", a->o, b->o, c ? c->o : NULL, rows, row},
        {"lse", a->lse, b->lse, p->dtype == ABI_TF32 ? c->lse : NULL, rows / p->head_dim},
        {"dq", a->d_q, b->d_q, c ? c->d_q : NULL, rows, smooth},
        {"dk", a->d_k, b->d_k, c ? c->d_k : NULL, keys, smooth},
        {"dv", a->d_v, b->d_v, c ? c->d_v : NULL, keys, row},
        {"dsoft", a->d_x, b->d_x, c ? c->d_x : NULL, bias, 0, true, b->d_x_parts},
        {"dsoft by diagonals", a->d_diagonal, b->d_diagonal, c ? c->d_diagonal : NULL, diagonal,
         0, true, b->d_x_parts},
    };
    for (int t = 0; t < (check->backward ? p->bias ? 7 : 5 : 2); t++) {
        struct check_result r = check_one(&all[t], p->dtype, check->name);
        check_rows(&all[t], p->dtype, &r);
        check_push(r, ret, ret_count);
    }
out:
    problem_data_destroy(a);
    problem_data_destroy(b);
    problem_data_destroy(c);
    return code;
}
