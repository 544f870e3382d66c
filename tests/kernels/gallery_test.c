/* SPDX-License-Identifier: Apache-2.0 */
/* Every gallery mask, every dtype, forward and backward, at a length that tiles divide and at one that they do not:
   `gallery_test cpu` on every x86-64 level that runs here, `gallery_test cuda` on sm_80, emulated; with --few after it at the
   second length alone. */
#include "masks/language/gallery.h"
#include "runtime/compile/compile.h"
#include "tests/support/known/known_subject.h"
#include "tests/support/test.h"
#include "tools/reference/check.h"
#include <stdio.h>
#include <string.h>

enum { MAX_TARGETS = 8 };

/* Head dimensions by dtype. With dropout, which is there and not asked for, the kernels are those of covering_test, which has
   them for the same reason, and f16_test. */
static const uint32_t dims[] = {[ABI_F32] = 64, [ABI_BF16] = 80, [ABI_F16] = 40};

static struct kernel_request request_of(enum abi_dtype dtype)
{
    return (struct kernel_request){
        .dtype = dtype, .head_dim = dims[dtype], .backward = true, .dropout = true};
}

/* Number of wrong results. */
static uint32_t run_one(const char *name, uint32_t n, const struct target *t,
                        enum abi_dtype dtype, struct cache *cache)
{
    char what[80];
    const struct kernel_request f = request_of(dtype);
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
    struct known known;
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

static const uint32_t lengths[] = {128, 65};

/* Whether all masks by these kernels are known. */
static bool skips(struct choice *c, const struct target *t, enum abi_dtype dtype)
{
    const struct kernel_request f = request_of(dtype);
    struct cache_key key = {0};
    for (const struct gallery_entry *g = mask_gallery; g->name; g++)
        for (int n = c->few; n < 2; n++) {
            struct mask *m = subject_mask(g->name, lengths[n]);
            key = known_key_join(key, known_subject_key(m, t, &f, NULL));
            mask_destroy(m);
        }
    return known_skips(&c->known, key);
}

/* All masks by the kernels of a target and a dtype, which are compiled once. Counts the kernels. */
static uint32_t run_kernels(struct choice *c, const struct target *t, enum abi_dtype dtype,
                            uint32_t *ret_kernels)
{
    const struct kernel_request f = request_of(dtype);
    struct error e = {0};
    uint32_t wrong = 0;
    if (kernel_request_check(&f, t, &e))
        fail_msg("%s: %s", subject_name(t), e.text);
    if (subject_repeats(t, &f))
        return 0;
    ++*ret_kernels;
    if (skips(c, t, dtype))
        return 0;
    for (const struct gallery_entry *g = mask_gallery; g->name; g++)
        for (int n = c->few; n < 2; n++)
            wrong += run_one(g->name, lengths[n], t, dtype, c->cache) > 0;
    return wrong;
}

static void test_gallery(void **state)
{
    struct choice *c = *state;
    const struct target *list[MAX_TARGETS];
    const uint32_t count = targets_of(c->kind, list);
    uint32_t wrong = 0, kernels = 0;
    for (uint32_t t = 0; t < count; t++)
        for (int dtype = ABI_F32; dtype <= ABI_F16; dtype++)
            wrong += run_kernels(c, list[t], (enum abi_dtype)dtype, &kernels);
    print_message("%u targets and dtypes\n", kernels);
    assert_true(kernels >= 3); /* f32, bf16 and f16 */
    assert_int_equal(wrong, 0);
}

/* A list for each device, and on CPUs for each compiler. */
static void start_known(struct choice *c, bool update)
{
    const bool clang = !strncmp(host_compiler_version(), "clang", 5);
    known_start_subject(&c->known,
                        c->kind == TARGET_CUDA ? "gallery_cuda"
                        : clang                ? "gallery_clang"
                                               : "gallery_gcc",
                        "tests/kernels/gallery_test.c", update);
}

int main(int argc, char **argv)
{
    static struct choice c;
    bool update = false;
    for (int k = 2; k < argc; k++) {
        c.few |= !strcmp(argv[k], "--few");
        update |= !strcmp(argv[k], "--update");
    }
    if (argc != 2 + c.few + update || (strcmp(argv[1], "cpu") && strcmp(argv[1], "cuda"))) {
        print_error("usage: gallery_test cpu|cuda [--few] [--update]\n");
        return 2;
    }
    c.kind = strcmp(argv[1], "cpu") ? TARGET_CUDA : TARGET_CPU;
    c.cache = subject_start();
    start_known(&c, update);
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_gallery, &c)};
    const int failed = cmocka_run_group_tests_name("gallery", tests, NULL, NULL);
    subject_finish(c.cache);
    return known_finish(&c.known, failed);
}
