/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA templates, run on the CPU by the emulation, against the float64 reference: every
   mask of the gallery, forward and backward; each kind of piece with each feature; equal bits
   whatever the order of threads. */
#include "masks/base/memory.h"
#include "masks/language/gallery.h"
#include "runtime/device/emulated/emulated.h"
#include "tests/support/known/known_text.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

#define FEATURES(type, d, ...)                                      \
    {                                                               \
        .dtype = type, .head_dim = d, .backward = true, __VA_ARGS__ \
    }

static struct known known;

/* ---- the templates ---- */

/* Each mask with both kinds of products, and both transforms between them; another order of the threads each. */
static void check_gallery(const char *name, enum abi_dtype dtype, bool sparsegen, uint32_t seed)
{
    struct kernel_case c = {name, 77, 0, FEATURES(dtype, 16)};
    if (sparsegen) {
        c.request.transform = ABI_SPARSEGEN;
        c.request.lambda = -4;
    }
    struct maskc_kernel *kernel = known_load_text(&known, &c, "gallery", NULL);
    if (!kernel)
        return;
    struct problem p = fixture_problem(kernel);
    emulated_set_seed(seed);
    must_hold(kernel, &p, name);
    emulated_set_seed(0);
    kernel_unload(kernel);
}

static void test_gallery(void **state)
{
    (void)state;
    static const enum abi_dtype dtypes[] = {ABI_F32, ABI_TF32};
    uint32_t count = 0;
    for (const struct gallery_entry *g = mask_gallery; g->name; g++)
        for (uint32_t k = 0; k < 2; k++, count++)
            check_gallery(g->name, dtypes[k], (count / 2 + k) % 2, count);
    assert_true(count >= 24);
}

/* One query, and lengths about one tile. */
static void test_lengths(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {1, 31, 32, 33};
    for (uint32_t k = 0; k < 8; k++) {
        struct kernel_case c = {"causal", lengths[k / 2], 2, FEATURES(ABI_F32, 24)};
        if (k % 2)
            c.request = (struct kernel_request)FEATURES(
                ABI_TF32, 40, .transform = ABI_SPARSEGEN, .lambda = -4);
        struct maskc_kernel *kernel = known_load_text(&known, &c, "lengths", NULL);
        if (!kernel)
            continue;
        struct problem p = fixture_problem(kernel);
        must_hold(kernel, &p, c.mask);
        kernel_unload(kernel);
    }
}

/* Masks whose plans have, between them, all kinds of pieces in both directions. */
static const char *const shapes[] = {"dam-s-example", "blocks(2)|diagonal(-3)",
                                     "rows(5,40)|columns(7)|window(2)", "causal",
                                     "summary(4, 1) - random(0.15, seed=4) | diagonal(0)"};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* clang-format off */
static const struct kernel_request feature_cases[] = {
    FEATURES(ABI_F32,   64, .dropout = true),
    FEATURES(ABI_F32,   24, .dropout = true, .transform = ABI_SPARSEGEN, .lambda = -4),
    FEATURES(ABI_BF16,  80, .dropout = true),
    FEATURES(ABI_F16,   40, .dropout = true),
    FEATURES(ABI_BF16,  16, .dropout = true, .transform = ABI_SPARSEGEN, .lambda = 0.5f),
    FEATURES(ABI_F16,   72, .dropout = true, .transform = ABI_SPARSEGEN, .lambda = -4),
    FEATURES(ABI_F32,  256, .dropout = true, .transform = ABI_SPARSEGEN, .lambda = -1),
    FEATURES(ABI_TF32,  64, .dropout = true),
    FEATURES(ABI_TF32,  40, .dropout = true, .transform = ABI_SPARSEGEN, .lambda = -4),
};
/* clang-format on */

static uint32_t uses; /* of all feature cases */

static void see(const struct artifact *a)
{
    uses |= a->plan[0].forward.uses;
}

static void test_features(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof feature_cases / sizeof *feature_cases; f++)
        for (size_t s = 0; s < SHAPES; s++) {
            if (feature_cases[f].head_dim > 100 && s != 2)
                continue;
            struct kernel_case c = {shapes[s], s == 1 ? 128 : 70, s ? 2 : 0, feature_cases[f]};
            struct maskc_kernel *k = known_load_text(&known, &c, "features", see);
            if (!k)
                continue;
            must_launch(k, 33, shapes[s]);
            kernel_unload(k);
        }
    /* the f32 and the resident kernels take no residue classes */
    assert_int_equal(uses, ((1u << ABI_KINDS) - 1) & ~(1u << ABI_RESIDUE));
}

static void test_order_of_threads(void **state)
{
    (void)state;
    const struct kernel_case c = {
        "dam-s-example", 70, 0,
        FEATURES(ABI_F32, 16, .transform = ABI_SPARSEGEN, .lambda = -4)};
    struct maskc_kernel *k = known_load_text(&known, &c, "order", NULL);
    if (!k)
        return;
    struct problem p = fixture_problem(k);
    must_repeat(k, &p, 4);
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

int main(int argc, char **argv)
{
    known_start_text(&known, "emulated", argc > 1 && !strcmp(argv[1], "--update"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gallery),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_order_of_threads),
        cmocka_unit_test(test_text_that_does_not_compile),
    };
    return known_finish(&known, cmocka_run_group_tests_name("emulated", tests, NULL, NULL));
}
