/* SPDX-License-Identifier: Apache-2.0 */
/* Do kernels of 16 bits correct delta? They estimate it by rowsum(dO o O), O being rounded, and correct it at the end (templates/cpu/delta.h,
   templates/cuda/tiled/queries.cu). Where the values of V are far from 0 and alike, the estimate is off by many times what
   the plain way is; random values around 0 do not show it. */
#include "tests/support/subject.h"
#include "tests/support/test.h"
#include "tools/reference/check.h"
#include <math.h>

/* Columns of a row in several blocks: where one has all, there is nothing to correct. */
enum { MAX_TARGETS = 8, MEAN = 16, N = 600 };

/* In bf16 and f16: half a unit in the last place, the least tolerance of the contract. */
static double half_unit(enum abi_dtype dtype)
{
    return dtype == ABI_BF16 ? 0x1p-9 : 0x1p-12;
}

static uint32_t check_gradient(const char *target, const char *name, const struct problem *p,
                               const double *got, const double *plain, const double *truth)
{
    const uint64_t size = problem_elements(p);
    const double error = error_measure(got, truth, size),
                 most = fmax(1.5 * error_measure(plain, truth, size), half_unit(p->dtype));
    if (error <= most)
        return 0;
    print_error("%s, %s: %s is off by %g, at most %g\n", target, dtype_name(p->dtype), name,
                error, most);
    return 1;
}

static uint32_t check_kernel(const struct maskc_kernel *k, const struct problem *p,
                             const char *target)
{
    struct error e = {0};
    struct problem_data *d = problem_inputs(p);
    for (uint64_t x = 0; x < problem_key_elements(p); x++)
        d->v[x] = dtype_held(p->dtype, MEAN + d->v[x]);
    struct problem_data *plain = problem_data_copy(p, d), *truth = problem_data_copy(p, d);
    if (kernel_run_problem(k, p, d, true, 1, &e) < 0)
        fail_msg("%s", e.text);
    reference_plain(p, plain, true);
    reference_run(p, truth, true);
    const uint32_t failed = check_gradient(target, "dq", p, d->d_q, plain->d_q, truth->d_q) +
                            check_gradient(target, "dk", p, d->d_k, plain->d_k, truth->d_k) +
                            check_gradient(target, "dv", p, d->d_v, plain->d_v, truth->d_v);
    problem_data_destroy(d);
    problem_data_destroy(plain);
    problem_data_destroy(truth);
    return failed;
}

static uint32_t check_target(const struct target *t, enum abi_dtype dtype, struct cache *cache)
{
    const struct kernel_request f = {.dtype = dtype, .head_dim = 32, .backward = true};
    struct mask *m = subject_mask("dense", N);
    struct maskc_kernel *k = subject_load(m, t, &f, cache);
    const struct problem p = {
        .mask = m, .batch = 1, .length = N, .head_dim = 32, .dtype = dtype, .random_seed = 7};
    const uint32_t failed = check_kernel(k, &p, subject_name(t));
    maskc_kernel_destroy(k);
    mask_destroy(m);
    return failed;
}

/* The best level of the CPU, with its matrix unit; a level of vectors; the GPU. */
static void test_values_far_from_zero(void **state)
{
    const struct target *list[MAX_TARGETS];
    const uint32_t count = subject_targets(list, MAX_TARGETS), gpu = count - 1,
                   vectors = gpu > 1;
    const struct {
        uint32_t target;
        enum abi_dtype dtype;
    } cases[] = {{gpu - 1, ABI_BF16}, {vectors, ABI_BF16}, {vectors, ABI_F16}, {gpu, ABI_BF16}};
    uint32_t failed = 0;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        failed += check_target(list[cases[k].target], cases[k].dtype, *state);
    assert_int_equal(failed, 0);
}

int main(void)
{
    struct cache *cache = subject_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_values_far_from_zero, cache)};
    const int failed = cmocka_run_group_tests_name("delta", tests, NULL, NULL);
    subject_finish(cache);
    return failed;
}
