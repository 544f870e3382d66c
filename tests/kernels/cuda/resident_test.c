/* SPDX-License-Identifier: Apache-2.0 */
/* The resident CUDA kernels, for short sequences, emulated, against float64: lengths from one token to what a
   target's shared memory holds, head dimensions that are padded, every kind of launch; equal bits
   whatever the order of threads. */
#include "masks/base/memory.h"
#include "masks/language/gallery.h"
#include "runtime/device/emulated/emulated.h"
#include "runtime/emulated/launch.h"
#include "tests/support/known/known_text.h"
#include "tests/support/planned_work.h"
#include "tests/support/test.h"
#include "tools/reference/check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FEATURES(type, d, ...)                                      \
    {                                                               \
        .dtype = type, .head_dim = d, .backward = true, __VA_ARGS__ \
    }

static struct known known;

static bool is_resident(const struct phase *p)
{
    return !strncmp(p->entry, "attention_resident_", 19);
}

/* The forward pass is resident, and .. */
static void see_resident(const struct artifact *a)
{
    const struct launch_record *r = &a->target[0].launch;
    assert_true(is_resident(&r->forward[0]));
    assert_int_equal(r->n_forward, 1); /* for all heads */
    assert_int_equal(a->plan[0].forward.uses & ~(1u << ABI_TILES), 0);
}

static void see_forward_alone(const struct artifact *a)
{
    see_resident(a);
    assert_false(is_resident(&a->target[0].launch.backward[0]));
}

static void see_both(const struct artifact *a)
{
    see_resident(a);
    assert_true(is_resident(&a->target[0].launch.backward[0]));
    assert_int_equal(a->target[0].launch.n_backward, 1);
}

/* The case by the resident kernels, also where others are predicted to be faster. */
static struct kernel_case of_family(const struct kernel_case *c)
{
    struct kernel_case ret = *c;
    ret.family = "cuda_resident";
    return ret;
}

/* With both passes resident; null: it ran right before. */
static struct maskc_kernel *may_load(const struct kernel_case *c, const char *what)
{
    const struct kernel_case own = of_family(c);
    return known_load_text(&known, &own, what, see_both);
}

static struct maskc_kernel *must_load(const struct kernel_case *c)
{
    const struct kernel_case own = of_family(c);
    struct maskc_kernel *k = must_load_text(&own);
    see_both(k->artifact);
    return k;
}

static void check_case(const struct kernel_case *c, bool backward)
{
    const struct kernel_case own = of_family(c);
    struct maskc_kernel *k =
        known_load_text(&known, &own, "case", backward ? see_both : see_forward_alone);
    if (!k)
        return;
    must_hold_as_planned(k, c->mask);
    kernel_unload(k);
}

static void test_gallery(void **state)
{
    (void)state;
    uint32_t count = 0;
    for (const struct gallery_entry *g = mask_gallery; g->name; g++, count++) {
        struct kernel_case c = {g->name, 128, 0, FEATURES(ABI_BF16, 32)};
        check_case(&c, true);
        c.request = (struct kernel_request)FEATURES(ABI_F16, 32, .transform = ABI_SPARSEGEN,
                                                    .lambda = -4);
        check_case(&c, true);
    }
    assert_true(count >= 12);
}

/* n, D, and whether the backward pass is resident too. */
static const struct shape {
    uint32_t n, dim;
    bool backward;
    const char *target;
} shapes[] = {
    {1, 64, true, "sm_80"},    {17, 40, true, "sm_80"},    {33, 16, true, "sm_80"},
    {64, 256, true, "sm_90a"}, {65, 72, true, "sm_80"},    {96, 96, true, "sm_80"},
    {90, 128, true, "sm_80"},  {100, 80, true, "sm_80"},   {100, 200, true, "sm_90a"},
    {128, 64, true, "sm_86"},  {187, 64, true, "sm_90a"},  {187, 64, false, "sm_80"},
    {170, 64, true, "sm_80"},  {395, 64, false, "sm_86"},  {129, 128, false, "sm_86"},
    {186, 64, true, "sm_80"},  {234, 64, true, "sm_90a"},  {396, 64, false, "sm_86"},
    {82, 128, true, "sm_86"},  {235, 64, false, "sm_90a"}, {168, 128, true, "sm_90a"},
    {96, 256, true, "sm_90a"}, {193, 80, false, "sm_90a"}, {180, 112, true, "sm_90a"},
    {256, 32, true, "sm_90a"}, {257, 16, false, "sm_90a"},
};
static const char *const masks[] = {"window(4)|global(0)-diagonal(0)", "random(0.1, seed=3)",
                                    "causal"};

static void test_shapes(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        const struct shape *s = &shapes[k];
        struct kernel_case c = {s->n < 5 ? "dense" : masks[k % 3], s->n, 1,
                                FEATURES(k % 2 ? ABI_F16 : ABI_BF16, s->dim), s->target};
        check_case(&c, s->backward);
    }
}

/* clang-format off */
static const struct kernel_request feature_cases[] = {
    FEATURES(ABI_BF16,  64, .dropout = true),
    FEATURES(ABI_BF16,  24, .dropout = true, .transform = ABI_SPARSEGEN, .lambda = -4),
    FEATURES(ABI_F16,   80, .dropout = true),
    FEATURES(ABI_BF16, 128, .dropout = true, .transform = ABI_SPARSEGEN, .lambda = 0.5f),
};
/* clang-format on */

static void test_launches(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {14, 70, 33, 50};
    for (size_t f = 0; f < sizeof feature_cases / sizeof *feature_cases; f++)
        for (size_t s = 0; s < 3; s++) {
            struct kernel_case c = {masks[s], lengths[(f + s) % 4], 3, feature_cases[f]};
            struct maskc_kernel *k = may_load(&c, "launches");
            if (!k)
                continue;
            must_launch(k, 13, masks[s]);
            kernel_unload(k);
        }
}

/* Rows that fit in pairs alone, of which a launch takes some. */
static void test_cut(void **state)
{
    (void)state;
    struct kernel_case c = {masks[1], 186, 2, FEATURES(ABI_BF16, 64, .dropout = true), "sm_80"};
    struct maskc_kernel *k = must_load(&c);
    must_launch(k, 3, masks[1]);
    kernel_unload(k);
}

/* ---- slopes held from one turn to the next ---- */

/* The kernel on these inputs, and beside it float64 and the plain way. */
static void must_run_beside(const struct maskc_kernel *k, const struct problem *p,
                            struct problem_data *got, struct problem_data **truth,
                            struct problem_data **plain)
{
    struct error e = {0};
    *truth = problem_data_copy(p, got);
    *plain = problem_data_copy(p, got);
    assert_int_equal(kernel_run_problem(k, p, got, true, 0, &e), 0);
    reference_run(p, *truth, true);
    reference_plain(p, *plain, true);
}

static void must_measure(const double *got, const double *truth, const double *plain,
                         uint64_t size)
{
    const double most = 1.5 * error_measure(plain, truth, size);
    const double error = error_measure(got, truth, size);
    if (!(error <= most))
        fail_msg("error %g, at most %g", error, most);
}

/* V has far more in common than it differs by, and so has dP: what is left of it is as exact as ever. */
static void test_common(void **state)
{
    (void)state;
    for (uint32_t x = 0; x < 2; x++) {
        struct kernel_case c = {masks[1], 70, 2, FEATURES(ABI_BF16, 32, .dropout = true)};
        c.request.transform = x ? ABI_SPARSEGEN : ABI_SOFTMAX;
        c.request.lambda = x ? -4 : 0;
        struct maskc_kernel *k = must_load(&c);
        struct problem p = fixture_problem(k);
        p.dropout = 0.3;
        struct problem_data *got = problem_inputs(&p);
        const uint64_t size = problem_elements(&p);
        for (uint64_t at = 0; at < size; at++)
            got->v[at] = dtype_round(ABI_BF16, got->v[at] / 4 + 16);
        struct problem_data *truth, *plain;
        must_run_beside(k, &p, got, &truth, &plain);
        must_measure(got->d_q, truth->d_q, plain->d_q, size);
        must_measure(got->d_k, truth->d_k, plain->d_k, size);
        problem_data_destroy(got);
        problem_data_destroy(truth);
        problem_data_destroy(plain);
        kernel_unload(k);
    }
}

/* Relative to the rows' own norm, which may be far below that of the whole. */
static double error_of_odd_rows(const double *x, const double *truth, uint64_t size,
                                uint32_t dim)
{
    double wrong = 0, all = 0;
    for (uint64_t at = 0; at < size; at++)
        if (at / dim % 2) {
            wrong += (x[at] - truth[at]) * (x[at] - truth[at]);
            all += truth[at] * truth[at];
        }
    return sqrt(wrong / all);
}

/* Every other key scores so much less than its neighbours that what it gets is lost beside them, but
   not for dK of that key. */
static void test_faint(void **state)
{
    (void)state;
    enum { DIM = 32 };
    for (uint32_t x = 0; x < 4; x++) {
        struct kernel_case c = {"dense", 64, 1, FEATURES(x % 2 ? ABI_F16 : ABI_BF16, DIM)};
        struct maskc_kernel *k = must_load(&c);
        struct problem p = fixture_problem(k);
        p.batch = 1;
        p.lengths = NULL;
        struct problem_data *got = problem_inputs(&p);
        const uint64_t size = problem_elements(&p);
        for (uint64_t at = 0; at < size; at += DIM) {
            got->q[at] = 4;
            got->k[at] =
                at / DIM % 2 ? x < 2 ? -6 : -14 : 0; /* by a scale of 0.18: exp(-4), exp(-10) */
        }
        struct problem_data *truth, *plain;
        must_run_beside(k, &p, got, &truth, &plain);
        const double most = 1.5 * error_of_odd_rows(plain->d_k, truth->d_k, size, DIM);
        const double error = error_of_odd_rows(got->d_k, truth->d_k, size, DIM);
        if (!(error <= most))
            fail_msg("%s: error %g, at most %g", dtype_name(c.request.dtype), error, most);
        problem_data_destroy(got);
        problem_data_destroy(truth);
        problem_data_destroy(plain);
        kernel_unload(k);
    }
}

/* Slopes near the end of a float's range have no unit of their own, and do not grow. */
static void test_tiny(void **state)
{
    (void)state;
    struct error e = {0};
    struct kernel_case c = {masks[1], 40, 1, FEATURES(ABI_BF16, 32)};
    struct maskc_kernel *k = must_load(&c);
    struct problem p = fixture_problem(k);
    const uint64_t size = problem_elements(&p);
    for (int power = -126; power < -100; power++) {
        struct problem_data *got = problem_inputs(&p);
        for (uint64_t at = 0; at < size; at++)
            got->d_o[at] = dtype_round(ABI_BF16, ldexp(got->d_o[at], power));
        assert_int_equal(kernel_run_problem(k, &p, got, true, 0, &e), 0);
        for (uint64_t at = 0; at < size; at++) /* sums of 40 of up to 8 times as much */
            assert_true(fabs(got->d_q[at]) < ldexp(320, power) &&
                        fabs(got->d_k[at]) < ldexp(320, power));
        problem_data_destroy(got);
    }
    kernel_unload(k);
}

/* ---- equal bits ---- */

static void test_order_of_threads(void **state)
{
    (void)state;
    /* all scores held; several chunks of them and a row block for each warp; two row blocks, and rows cut */
    static const struct kernel_case cases[] = {
        {"dam-s-example", 70, 0, FEATURES(ABI_BF16, 32, .dropout = true)},
        {"random(0.2)", 141, 1, FEATURES(ABI_BF16, 16, .dropout = true), "sm_90a"},
        {"random(0.2)", 186, 1, FEATURES(ABI_F16, 64, .dropout = true), "sm_80"},
    };
    for (size_t x = 0; x < sizeof cases / sizeof *cases; x++) {
        struct maskc_kernel *k = may_load(&cases[x], "order");
        if (!k)
            continue;
        struct problem p = fixture_problem(k);
        p.dropout = 0.3;
        must_repeat(k, &p, 4);
        kernel_unload(k);
    }
}

/* ---- banks of shared memory ---- */

/* At every head dimension, shared memory is accessed without avoidable bank conflicts. */
static void test_banks(void **state)
{
    (void)state;
    static const uint32_t dims[] = {16, 32, 40, 64, 80, 96, 112, 128, 200, 256};
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
        struct kernel_case c = {"dense", 48, 1, FEATURES(ABI_F16, dims[d])};
        struct maskc_kernel *k = may_load(&c, "banks");
        if (!k)
            continue;
        struct problem p = fixture_problem(k);
        struct emulation_banks banks;
        emulated_count_banks(&banks);
        problem_data_destroy(must_run(k, &p, 0, 1));
        emulated_count_banks(NULL);
        assert_int_equal(banks.missed, 0);
        assert_true(banks.count >= 8);
        for (uint32_t s = 0; s < banks.count; s++) {
            const struct emulation_site *at = &banks.site[s];
            if (at->wavefronts != at->least)
                fail_msg("D %u, %s: %llu wavefronts, %llu are enough", dims[d], at->function,
                         (unsigned long long)at->wavefronts, (unsigned long long)at->least);
        }
        kernel_unload(k);
    }
}

int main(int argc, char **argv)
{
    known_start_text(&known, "resident", argc > 1 && !strcmp(argv[1], "--update"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gallery),  cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_launches), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_common),   cmocka_unit_test(test_faint),
        cmocka_unit_test(test_tiny),     cmocka_unit_test(test_order_of_threads),
        cmocka_unit_test(test_banks),
    };
    return known_finish(&known, cmocka_run_group_tests_name("resident", tests, NULL, NULL));
}
