/* SPDX-License-Identifier: Apache-2.0 */
/* Overflow of f16: values at the end of its range, whose outputs dropout doubles to infinity.
   There is then no NaN, and the gradients, which are small enough, are as exact as ever. And what its rounding must not
   hide from a check. */
#include "masks/base/memory.h"
#include "tests/support/program/options.h"
#include "tests/support/subject.h"
#include "tests/support/test.h"
#include "tools/reference/check.h"
#include <math.h>
#include <stdlib.h>

enum { MAX_TARGETS = 8 };

/* `seeds`: random inputs after one another; what is coarse on average shows in the worst of them. */
static const struct shape {
    const char *mask;
    uint32_t n, dim, seeds;
    bool
        cuda; /* skipped on CPUs; n = 260 runs the tiled family backward, the others the resident one */
} shapes[] = {
    {"dense", 40, 40, 8, false},       {"random(0.2)", 40, 40, 8, false},
    {"window(3)", 40, 40, 8, false},   {"random(0.2)", 40, 16, 4, true},
    {"random(0.2)", 260, 16, 1, true},
};

static void check_gradient(const double *got, const double *truth, const double *plain,
                           uint64_t size)
{
    double most = 1.5 * error_measure(plain, truth, size);
    assert_true(isfinite(most));
    assert_true(error_measure(got, truth, size) <= most);
}

/* From 65520 on f16 rounds to infinity; P as it is rounded may push an output to either side of that. */
static bool is_at_limit(double x)
{
    return fabs(fabs(x) - 65520) < 65520 * 0x1p-9;
}

static uint32_t check_outputs(const double *got, const double *truth, uint64_t size)
{
    uint32_t infinite = 0;
    for (uint64_t k = 0; k < size; k++) {
        assert_false(isnan(got[k]));
        if (!is_at_limit(truth[k]))
            assert_int_equal(isinf(got[k]) != 0, isinf(dtype_round(ABI_F16, truth[k])) != 0);
        infinite += isinf(got[k]) != 0;
    }
    return infinite;
}

/* Values at the end of f16's range, gradients of outputs so small that theirs are in it. */
static void fill(const struct problem *p, struct problem_data *a)
{
    uint64_t size = problem_elements(p);
    for (uint64_t x = 0; x < size; x++) {
        a->v[x] = (x % p->head_dim % 3 ? 1 : -1) * (x % 7 ? 65504.0 : 60000.0);
        a->d_o[x] = dtype_round(ABI_F16, a->d_o[x] * 0x1p-10);
    }
}

static void check_seed(const struct problem *p, struct maskc_kernel *k)
{
    struct error e = {0};
    uint64_t size = problem_elements(p);
    struct problem_data *a = problem_inputs(p);
    fill(p, a);
    struct problem_data *b = problem_data_copy(p, a), *c = problem_data_copy(p, a);
    assert_int_equal(kernel_run_problem(k, p, a, true, 0, &e), 0);
    reference_run(p, b, true);
    reference_plain(p, c, true);
    assert_in_range(check_outputs(a->o, b->o, size), size / 20, size / 20 * 19);
    check_gradient(a->d_q, b->d_q, c->d_q, size);
    check_gradient(a->d_k, b->d_k, c->d_k, size);
    check_gradient(a->d_v, b->d_v, c->d_v, size);
    problem_data_destroy(a);
    problem_data_destroy(b);
    problem_data_destroy(c);
}

static void check_target(const struct mask *m, uint32_t dim, uint32_t seeds,
                         const struct target *t, struct cache *cache)
{
    const struct kernel_request f = {
        .dtype = ABI_F16, .head_dim = dim, .backward = true, .dropout = true};
    if (subject_repeats(t, &f))
        return;
    struct maskc_kernel *k = subject_load(m, t, &f, cache);
    for (uint32_t seed = 0; seed < seeds; seed++) {
        const struct problem p = {.mask = m,
                                  .batch = 2,
                                  .length = m->n,
                                  .head_dim = dim,
                                  .dtype = ABI_F16,
                                  .dropout = 0.5,
                                  .seed = 3 + seed,
                                  .random_seed = 7 + seed};
        check_seed(&p, k);
    }
    maskc_kernel_destroy(k);
}

struct subject {
    struct cache *cache;
    uint32_t shapes;
};

static void test_overflow(void **state)
{
    const struct subject *s = *state;
    const struct target *list[MAX_TARGETS];
    uint32_t count = subject_targets(list, MAX_TARGETS);
    for (const struct shape *k = shapes; k < shapes + s->shapes; k++) {
        struct mask *m = subject_mask(k->mask, k->n);
        for (uint32_t t = 0; t < count; t++)
            if (!k->cuda || list[t]->kind == TARGET_CUDA)
                check_target(m, k->dim, k->seeds, list[t], s->cache);
        mask_destroy(m);
    }
}

/* O of a kernel that lacks one entry of the mask is checked: its row is wrong. */
static void check_lost(const struct maskc_kernel *k, const struct problem *p)
{
    struct error e = {0};
    struct check_result *r = NULL;
    uint32_t count = 0;
    assert_int_equal(check_problem(&(struct check){k, p, false, 0, "lost"}, &r, &count, &e), 0);
    assert_int_equal(count, 2); /* O and LSE */
    assert_false(r[0].ok);
    assert_string_equal(r[0].name, "lost: o, the worst row");
    free(r);
}

/* One entry of a million: the error of all rows together does not show it. */
static void test_lost_entry(void **state)
{
    const struct subject *s = *state;
    const struct kernel_request f = {.dtype = ABI_F16, .head_dim = 16};
    const struct target *list[MAX_TARGETS];
    const struct target *t = list[subject_targets(list, MAX_TARGETS) - 2]; /* the best CPU */
    struct mask *m = subject_mask("dense", 1024),
                *less = subject_mask("dense - (rows(500) & columns(700))", 1024);
    struct maskc_kernel *k = subject_load(less, t, &f, s->cache);
    check_lost(k, &(struct problem){.mask = m,
                                    .batch = 1,
                                    .length = m->n,
                                    .head_dim = f.head_dim,
                                    .dtype = f.dtype,
                                    .random_seed = 7});
    maskc_kernel_destroy(k);
    mask_destroy(m);
    mask_destroy(less);
}

/* --few: the first two shapes, for a second compiler. */
int main(int argc, char **argv)
{
    const bool few = test_option(argc, argv, "--few");
    struct cache *cache = subject_start();
    struct subject s = {cache, few ? 2 : sizeof shapes / sizeof *shapes};
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_overflow, &s),
                                       cmocka_unit_test_prestate(test_lost_entry, &s)};
    int failed = cmocka_run_group_tests_name("f16", tests, NULL, NULL);
    subject_finish(cache);
    return failed;
}
