/* SPDX-License-Identifier: Apache-2.0 */
/* Every gallery mask, every dtype, forward and backward, at a length that tiles divide and at one that they do not:
   `gallery_test cpu` on every x86-64 level that runs here, `gallery_test cuda` on sm_80, emulated; with --few after it at the
   second length alone. */
#include "masks/language/gallery.h"
#include "tests/support/subject.h"
#include "tests/support/test.h"
#include "tools/reference/check.h"
#include <stdio.h>
#include <string.h>

enum { MAX_TARGETS = 8 };

/* Head dimensions by dtype. With dropout, which is there and not asked for, the kernels are those of covering_test, which has
   them for the same reason, and f16_test. */
static const uint32_t dims[] = {[ABI_F32] = 64, [ABI_BF16] = 80, [ABI_F16] = 40};

/* How many results are wrong; counts the kernel in *runs. */
static uint32_t run_one(const char *name, uint32_t n, const struct target *t,
                        enum abi_dtype dtype, struct cache *cache, uint32_t *runs)
{
    char what[80];
    struct error e = {0};
    struct kernel_request f = {
        .dtype = dtype, .head_dim = dims[dtype], .backward = true, .dropout = true};
    if (kernel_request_check(&f, t, &e))
        fail_msg("%s: %s", subject_name(t), e.text);
    if (subject_repeats(t, &f))
        return 0;
    ++*runs;
    struct mask *m = subject_mask(name, n);
    struct maskc_kernel *k = subject_load(m, t, &f, cache);
    struct problem p = {.mask = m,
                        .batch = 1,
                        .length = n,
                        .head_dim = dims[dtype],
                        .dtype = dtype,
                        .random_seed = n};
    snprintf(what, sizeof what, "%s n=%u %s %s", name, n, subject_name(t), dtype_name(dtype));
    uint32_t wrong = subject_check(k, &p, true, what);
    maskc_kernel_destroy(k);
    mask_destroy(m);
    return wrong;
}

struct choice {
    enum target_kind kind;
    bool few;
    struct cache *cache;
};

static uint32_t targets_of(enum target_kind kind, const struct target **ret)
{
    const struct target *all[MAX_TARGETS];
    uint32_t kept = 0, count = subject_targets(all, MAX_TARGETS);
    for (uint32_t k = 0; k < count; k++)
        if (all[k]->kind == kind)
            ret[kept++] = all[k];
    return kept;
}

static void test_gallery(void **state)
{
    static const uint32_t lengths[] = {128, 65};
    const struct choice *c = *state;
    const struct target *list[MAX_TARGETS];
    uint32_t count = targets_of(c->kind, list), wrong = 0, runs = 0;
    for (const struct gallery_entry *g = mask_gallery; g->name; g++)
        for (uint32_t t = 0; t < count; t++)
            for (int dtype = ABI_F32; dtype <= ABI_F16; dtype++)
                for (int n = c->few; n < 2; n++)
                    wrong += run_one(g->name, lengths[n], list[t], (enum abi_dtype)dtype,
                                     c->cache, &runs) > 0;
    print_message("%u kernels\n", runs);
    assert_true(runs >= 12 * 3 * (c->few ? 1u : 2u)); /* f32, bf16 and f16 at each length */
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    const bool few = argc == 3 && !strcmp(argv[2], "--few");
    if (argc != 2 + few || (strcmp(argv[1], "cpu") && strcmp(argv[1], "cuda"))) {
        print_error("usage: gallery_test cpu|cuda [--few]\n");
        return 2;
    }
    struct choice c = {strcmp(argv[1], "cpu") ? TARGET_CUDA : TARGET_CPU, few, subject_start()};
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_gallery, &c)};
    int failed = cmocka_run_group_tests_name("gallery", tests, NULL, NULL);
    subject_finish(c.cache);
    return failed;
}
