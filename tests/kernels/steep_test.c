/* SPDX-License-Identifier: Apache-2.0 */
/* Steep scores: weights of keys far apart in the plan differ by hundreds of binary orders, whichever
   of them the kernel meets first. Whatever it takes scores relative to has to change on the way. */
#include "tests/kernels/subject.h"
#include "tools/check/check.h"
#include <setjmp.h>
#include <stdarg.h>
/* after the standard ones */
#include <cmocka.h>

enum { MAX_TARGETS = 8, N = 400 };

static uint32_t judge(const struct mask *m, const struct target *t, const struct features *f,
                      struct cache *cache)
{
    static const double scale[] = {4, -40};
    struct maskc_kernel *k = subject_load(m, t, f, cache);
    struct problem p = {.mask = m,
                        .batch = 1,
                        .length = N,
                        .head_dim = f->head_dim,
                        .dtype = f->dtype,
                        .random_seed = 11};
    uint32_t failed = 0;
    for (uint32_t x = 0; x < sizeof scale / sizeof *scale; x++) {
        p.scale = scale[x];
        failed += subject_judge(k, &p, false, t->name);
    }
    maskc_kernel_destroy(k);
    return failed;
}

static void test_steep(void **state)
{
    static const char *const name[] = {"dense", "window(20)|global(0,-1)"};
    static const struct features feature[] = {{.dtype = ABI_BF16, .head_dim = 64},
                                              {.dtype = ABI_F32, .head_dim = 32}};
    const struct target *list[MAX_TARGETS];
    uint32_t count = subject_targets(list, MAX_TARGETS) - 1, failed = 0; /* but the GPU */
    for (uint32_t k = 0; k < sizeof name / sizeof *name; k++) {
        struct mask *m = subject_mask(name[k], N);
        for (uint32_t x = 0; x < count * 2; x++)
            failed += judge(m, list[x / 2], &feature[x % 2], *state);
        mask_destroy(m);
    }
    assert_int_equal(failed, 0);
}

int main(void)
{
    struct cache *cache = subject_start();
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_steep, cache)};
    int failed = cmocka_run_group_tests_name("steep", tests, NULL, NULL);
    subject_finish(cache);
    return failed;
}
