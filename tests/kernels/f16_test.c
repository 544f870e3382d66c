/* SPDX-License-Identifier: Apache-2.0 */
/* What f16 cannot hold: values at the end of its range, whose outputs dropout doubles to infinity.
   There is then no NaN, and the gradients, which are small enough, are as exact as ever. */
#include "masks/base/memory.h"
#include "tests/kernels/subject.h"
#include "tools/check/check.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
/* after the standard ones */
#include <cmocka.h>

enum { MAX_TARGETS = 8, DIM = 16 };

static void check_gradient(const double *got, const double *truth, const double *plain,
                           uint64_t size)
{
    double most = 1.5 * error_measure(plain, truth, size);
    assert_true(isfinite(most));
    assert_true(error_measure(got, truth, size) <= most);
}

static uint32_t check_outputs(const double *got, const double *truth, uint64_t size)
{
    uint32_t infinite = 0;
    for (uint64_t k = 0; k < size; k++) {
        assert_int_equal(isinf(got[k]), isinf(dtype_round(ABI_F16, truth[k])));
        assert_false(isnan(got[k]));
        infinite += isinf(got[k]) != 0;
    }
    return infinite;
}

static void check_target(const struct mask *m, const struct target *t, struct cache *cache)
{
    struct error e = {0};
    const struct features f = {
        .dtype = ABI_F16, .head_dim = DIM, .backward = true, .dropout = true};
    if (features_check(&f, t, &e))
        return;
    struct maskc_kernel *k = subject_load(m, t, &f, cache);
    struct problem p = {.mask = m,
                        .batch = 2,
                        .length = m->n,
                        .head_dim = DIM,
                        .dtype = ABI_F16,
                        .dropout = 0.5,
                        .seed = 3,
                        .random_seed = 7};
    struct problem_data *a = problem_inputs(&p);
    uint64_t size = problem_elements(&p);
    for (uint64_t x = 0; x < size; x++) {
        a->v[x] = (x % DIM % 3 ? 1 : -1) * (x % 7 ? 65504.0 : 60000.0);
        a->d_o[x] = dtype_round(ABI_F16, a->d_o[x] * 0x1p-10);
    }
    struct problem_data *b = problem_data_copy(&p, a), *c = problem_data_copy(&p, a);
    assert_int_equal(kernel_run_problem(k, &p, a, true, 0, &e), 0);
    reference_run(&p, b, true);
    reference_plain(&p, c, true);
    uint32_t infinite = check_outputs(a->o, b->o, size);
    assert_in_range(infinite, size / 20, size / 20 * 19);
    check_gradient(a->d_q, b->d_q, c->d_q, size);
    check_gradient(a->d_k, b->d_k, c->d_k, size);
    check_gradient(a->d_v, b->d_v, c->d_v, size);
    problem_data_destroy(a);
    problem_data_destroy(b);
    problem_data_destroy(c);
    maskc_kernel_destroy(k);
}

static void test_overflow(void **state)
{
    /* on CUDA n = 260 is backward for the streaming family, the others are for the short one */
    static const struct {
        const char *name;
        uint32_t n;
    } mask[] = {{"dense", 40}, {"window(3)", 40}, {"random(0.2)", 40}, {"random(0.2)", 260}};
    const struct target *list[MAX_TARGETS];
    uint32_t count = subject_targets(list, MAX_TARGETS);
    for (uint32_t k = 0; k < sizeof mask / sizeof *mask; k++) {
        struct mask *m = subject_mask(mask[k].name, mask[k].n);
        for (uint32_t t = 0; t < count; t++)
            check_target(m, list[t], *state);
        mask_destroy(m);
    }
}

int main(void)
{
    struct cache *cache = subject_start();
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_overflow, cache)};
    int failed = cmocka_run_group_tests_name("f16", tests, NULL, NULL);
    subject_finish(cache);
    return failed;
}
