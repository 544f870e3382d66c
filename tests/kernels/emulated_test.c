/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA templates, run on the CPU by the emulation, against the float64 reference: every
   mask of the gallery, forward and backward; each kind of piece with each feature; equal bits
   whatever the order of threads. */
#include "masks/base/memory.h"
#include "masks/load.h"
#include "tests/kernels/cuda_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after the standard ones */
#include <cmocka.h>

#define FEATURES(type, d, ...)                                      \
    {                                                               \
        .dtype = type, .head_dim = d, .backward = true, __VA_ARGS__ \
    }

static struct maskc_kernel *must_load(const struct kernel_case *c)
{
    struct error e = {0};
    struct maskc_kernel *k = fixture_load(c, NULL, NULL, &e);
    if (!k)
        fail_msg("%s", e.text);
    return k;
}

static void must_hold(const struct maskc_kernel *k, const struct problem *p, const char *name)
{
    struct error e = {0};
    struct check_result *r = NULL;
    uint32_t count = 0;
    if (check_problem(k, p, k->artifact->features.backward, 0, name, &r, &count, &e) < 0)
        fail_msg("%s: %s", name, e.text);
    assert_true(count >= 2);
    for (uint32_t c = 0; c < count; c++)
        if (!r[c].ok)
            fail_msg("%s: error %g, at most %g", r[c].name, r[c].error, r[c].tolerance);
    free(r);
}

/* ---- the templates ---- */

static void test_gallery(void **state)
{
    (void)state;
    uint32_t count = 0;
    for (const char *const *name = mask_gallery_names(); *name; name++, count++) {
        struct kernel_case c = {*name, 77, 0, FEATURES(ABI_F32, 16)};
        if (count % 2) {
            c.features.transform = ABI_SPARSEGEN;
            c.features.lambda = -4;
        }
        struct maskc_kernel *k = must_load(&c);
        struct problem p = fixture_problem(k);
        must_hold(k, &p, *name);
        kernel_unload(k);
    }
    assert_true(count >= 12);
}

/* Masks whose plans have, between them, all kinds of pieces in both directions. */
static const char *const shapes[] = {"dam-s-example", "blocks(2)|diagonal(-3)",
                                     "rows(5,40)|columns(7)|window(2)", "causal",
                                     "summary(4, 1) - random(0.15, seed=4) | diagonal(0)"};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* clang-format off */
static const struct features feature_cases[] = {
    FEATURES(ABI_F32,   64, .dropout = true),
    FEATURES(ABI_F32,   24, .dropout = true, .transform = ABI_SPARSEGEN, .lambda = -4),
    FEATURES(ABI_BF16,  80, .dropout = true),
    FEATURES(ABI_F16,   40, .dropout = true),
    FEATURES(ABI_BF16,  16, .dropout = true, .transform = ABI_SPARSEGEN, .lambda = 0.5f),
    FEATURES(ABI_F16,   72, .dropout = true, .transform = ABI_SPARSEGEN, .lambda = -4),
    FEATURES(ABI_F32,  256, .dropout = true, .transform = ABI_SPARSEGEN, .lambda = -1),
};
/* clang-format on */

static void check_launches(const struct maskc_kernel *k, const char *name)
{
    const uint32_t n = k->artifact->mask->n;
    const int32_t lengths[] = {(int32_t)n / 2, 0, (int32_t)n};
    struct problem p = fixture_problem(k);
    p.batch = 3;
    p.lengths = lengths;
    p.dropout = 0.2;
    p.layout = LAYOUT_BHND;
    must_hold(k, &p, name);
    p.packed = true;
    p.layout = LAYOUT_QKV;
    must_hold(k, &p, name);
    struct problem shorter = fixture_problem(k);
    shorter.length = n - 33;
    shorter.scale = -0.4;
    must_hold(k, &shorter, name);
}

static void test_features(void **state)
{
    (void)state;
    uint32_t uses = 0;
    for (size_t f = 0; f < sizeof feature_cases / sizeof *feature_cases; f++)
        for (size_t s = 0; s < SHAPES; s++) {
            if (feature_cases[f].head_dim > 100 && s != 2)
                continue;
            struct kernel_case c = {shapes[s], s == 1 ? 128 : 70, s ? 2 : 0, feature_cases[f]};
            struct maskc_kernel *k = must_load(&c);
            uses |= k->artifact->plan[0].forward.uses;
            check_launches(k, shapes[s]);
            kernel_unload(k);
        }
    /* residue classes are for CPU targets */
    assert_int_equal(uses, ((1u << ABI_KINDS) - 1) & ~(1u << ABI_RESIDUE));
}

static struct problem_data *run_with_seed(const struct maskc_kernel *k, const struct problem *p,
                                          uint64_t seed, uint32_t threads)
{
    struct error e = {0};
    struct problem_data *d = problem_inputs(p);
    emulated_set_seed(seed);
    if (kernel_run_problem(k, p, d, true, threads, &e) < 0)
        fail_msg("seed %llu: %s", (unsigned long long)seed, e.text);
    emulated_set_seed(0);
    return d;
}

static void test_order_of_threads(void **state)
{
    (void)state;
    const struct kernel_case c = {
        "dam-s-example", 70, 0,
        FEATURES(ABI_F32, 16, .transform = ABI_SPARSEGEN, .lambda = -4)};
    struct maskc_kernel *k = must_load(&c);
    struct problem p = fixture_problem(k);
    const size_t bytes = problem_elements(&p) * sizeof(double);
    struct problem_data *first = run_with_seed(k, &p, 0, 0);
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct problem_data *d = run_with_seed(k, &p, seed, (uint32_t)seed);
        assert_memory_equal(d->o, first->o, bytes);
        assert_memory_equal(d->lse, first->lse, bytes / p.head_dim);
        assert_memory_equal(d->d_q, first->d_q, bytes);
        assert_memory_equal(d->d_k, first->d_k, bytes);
        assert_memory_equal(d->d_v, first->d_v, bytes);
        problem_data_destroy(d);
    }
    problem_data_destroy(first);
    kernel_unload(k);
}

/* ---- text ---- */

static char *break_text(const char *text, void *data)
{
    (void)data;
    struct text out = {0};
    text_add(&out, "%s\nthis is no C;\n", text);
    return text_take(&out);
}

static void test_text_that_does_not_compile(void **state)
{
    (void)state;
    const struct kernel_case c = {"dense", 8, 0, FEATURES(ABI_F32, 16)};
    struct error e = {0};
    assert_null(fixture_load(&c, break_text, NULL, &e));
    assert_non_null(strstr(e.text, "emulation of sm_80"));
    assert_non_null(strstr(e.text, "this is no C"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gallery),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_order_of_threads),
        cmocka_unit_test(test_text_that_does_not_compile),
    };
    return cmocka_run_group_tests_name("emulated", tests, NULL, NULL);
}
