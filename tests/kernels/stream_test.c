/* SPDX-License-Identifier: Apache-2.0 */
/* The streaming kernels of the half dtypes, run on the CPU by the emulation, against the float64
   reference: the gallery, each kind of piece with each feature and each shape of head, a long
   sequence, and equal bits whatever the order of threads and the number of blocks. `stream_test
   --all` takes the full product. */
#include "masks/base/memory.h"
#include "masks/load.h"
#include "tests/kernels/cuda_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after the standard ones */
#include <cmocka.h>

static bool all; /* the full product */

#define FEATURES(type, d, ...)                                      \
    {                                                               \
        .dtype = type, .head_dim = d, .backward = true, __VA_ARGS__ \
    }
#define SPARSEGEN(l) .transform = ABI_SPARSEGEN, .lambda = l

static struct maskc_kernel *must_load(const struct kernel_case *c)
{
    struct error e = {0};
    struct maskc_kernel *k = fixture_load(c, NULL, NULL, &e);
    if (!k)
        fail_msg("%s", e.text);
    assert_string_equal(k->target->launch.forward[0].entry, "attention_forward");
    assert_int_equal(k->target->launch.strip_rows, 64);
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
            fail_msg("%s, %s d %u: error %g, at most %g", r[c].name,
                     dtype_name(k->artifact->features.dtype), k->artifact->features.head_dim,
                     r[c].error, r[c].tolerance);
    free(r);
}

static void test_gallery(void **state)
{
    (void)state;
    uint32_t count = 0;
    for (const char *const *name = mask_gallery_names(); *name; name++, count++) {
        struct kernel_case c = {*name, 150, 0, FEATURES(ABI_BF16, 64), .streamed = true};
        if (count % 2)
            c.features = (struct features)FEATURES(ABI_F16, 32, SPARSEGEN(-4));
        struct maskc_kernel *k = must_load(&c);
        struct problem p = fixture_problem(k);
        must_hold(k, &p, *name);
        kernel_unload(k);
    }
    assert_true(count >= 12);
}

/* Masks whose plans have, between them, all kinds of pieces in both directions. */
static const char *const shapes[] = {"local(128)",
                                     "rows(5,40)|columns(7)|window(2)",
                                     "summary(64, 1)|diagonal(0)",
                                     "causal - random(0.15, seed=4)",
                                     "stride(8)|diagonal(1)|rows(30)",
                                     "dam-s-example"};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* clang-format off */
static const struct features feature_cases[] = {
    FEATURES(ABI_BF16,  64, .dropout = true),
    FEATURES(ABI_F16,   80, .dropout = true, SPARSEGEN(-4)),
    FEATURES(ABI_F16,  128, .dropout = true),
    FEATURES(ABI_BF16,  72),
    FEATURES(ABI_BF16,  32, .dropout = true, SPARSEGEN(0.5f)),
    FEATURES(ABI_BF16, 256, .dropout = true),
    FEATURES(ABI_F16,  200, .dropout = true, SPARSEGEN(-1)),
    FEATURES(ABI_F16,   16, .dropout = true),
    FEATURES(ABI_BF16,  40),
    FEATURES(ABI_BF16,  96),
};
/* clang-format on */
enum { FEATURE_CASES = sizeof feature_cases / sizeof *feature_cases };

/* Lengths, then packed, then shorter than the mask with a scale below zero. */
static void check_launches(const struct maskc_kernel *k, const char *name)
{
    const uint32_t n = k->artifact->mask->n;
    const int32_t lengths[] = {(int32_t)n / 2, 0, (int32_t)n};
    struct problem p = fixture_problem(k);
    p.batch = 3;
    p.lengths = lengths;
    p.dropout = k->artifact->features.dropout ? 0.2 : 0;
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

/* Each mask with each feature case, or each case with two masks. */
static void test_features(void **state)
{
    (void)state;
    uint32_t uses = 0;
    for (uint32_t f = 0; f < FEATURE_CASES; f++)
        for (uint32_t s = 0; s < SHAPES; s++) {
            struct kernel_case c = {shapes[s], 141, 0, feature_cases[f], .streamed = true};
            if (!all && (s + f) % SHAPES > 1)
                continue;
            struct maskc_kernel *k = must_load(&c);
            uses |= k->artifact->plan[0].forward.uses | k->artifact->plan[0].transposed.uses;
            check_launches(k, shapes[s]);
            kernel_unload(k);
        }
    assert_true(uses & 1u << ABI_TILES && uses & 1u << ABI_BLOCKS && uses & 1u << ABI_ROWS &&
                uses & 1u << ABI_COLUMNS && uses & 1u << ABI_RESIDUE);
    assert_false(uses & 1u << ABI_DIAGONAL);
}

/* Many stages, and keys for several steps of the row pass. */
static void test_long(void **state)
{
    (void)state;
    static const char *const masks[] = {"longformer(20, 2)", "star", "fixed(32, 1)"};
    for (uint32_t k = 0; k < 3; k++) {
        struct kernel_case c = {masks[k], 1024, 1, FEATURES(ABI_BF16, 64), .streamed = true};
        struct maskc_kernel *kernel = must_load(&c);
        struct problem p = fixture_problem(kernel);
        must_hold(kernel, &p, masks[k]);
        kernel_unload(kernel);
    }
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
    for (uint32_t f = 0; f < 2; f++) {
        const struct kernel_case c = {shapes[1], 141, 2, feature_cases[f], .streamed = true};
        struct maskc_kernel *k = must_load(&c);
        struct problem p = fixture_problem(k);
        const size_t bytes = problem_elements(&p) * sizeof(double);
        struct problem_data *first = run_with_seed(k, &p, 0, 0);
        for (uint64_t seed = 1; seed <= 3; seed++) {
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
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gallery),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_order_of_threads),
    };
    all = argc > 1 && !strcmp(argv[1], "--all");
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
