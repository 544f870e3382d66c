/* SPDX-License-Identifier: Apache-2.0 */
/* Each barrier of the CUDA templates is needed, and the emulation notices when one is missing:
   every SYNC() is deleted in turn, and at least one of a few small launches must then fail. */
#include "masks/base/memory.h"
#include "tests/kernels/cuda_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after the standard ones */
#include <cmocka.h>

static const char barrier[] = "SYNC();";

/* The masks together have several tiles in a row, lines first, and single rows. */
static const char *const masks[] = {"dense", "window(1)|rows(3,4)",
                                    "distance(1,30)|columns(0)"};
static const enum abi_transform transforms[] = {ABI_SOFTMAX, ABI_SPARSEGEN};

static struct kernel_case case_of(const char *mask, enum abi_transform transform)
{
    return (struct kernel_case){mask,
                                70,
                                2,
                                {.dtype = ABI_F32,
                                 .head_dim = 64,
                                 .backward = true,
                                 .transform = transform,
                                 .lambda = -4}};
}

/* The barrier of that number in a text, or null. */
static const char *find_barrier(const char *text, uint32_t number)
{
    const char *at = strstr(text, barrier);
    while (at && number--)
        at = strstr(at + 1, barrier);
    return at;
}

static char *delete_barrier(const char *text, void *number)
{
    char *copy = memory_text(text);
    char *at = copy + (find_barrier(text, *(uint32_t *)number) - text);
    memset(at, ' ', sizeof barrier - 1);
    at[sizeof barrier - 2] = ';';
    return copy;
}

/* Whether some launch of this kernel fails: the emulation complains, or a result is wrong. */
static bool is_red(const struct kernel_case *c, char *(*edit)(const char *, void *),
                   uint32_t number)
{
    struct error e = {0};
    struct check_result *r = NULL;
    uint32_t count = 0;
    struct maskc_kernel *k = fixture_load(c, edit, &number, &e);
    if (!k)
        fail_msg("%s", e.text);
    struct problem p = fixture_problem(k);
    bool red = check_problem(k, &p, true, 1, c->mask, &r, &count, &e) < 0;
    for (uint32_t at = 0; at < count; at++)
        red |= !r[at].ok;
    free(r);
    kernel_unload(k);
    return red;
}

static bool any_red(char *(*edit)(const char *, void *), uint32_t number)
{
    for (size_t t = 0; t < sizeof transforms / sizeof *transforms; t++)
        for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
            struct kernel_case c = case_of(masks[m], transforms[t]);
            if (is_red(&c, edit, number))
                return true;
        }
    return false;
}

static char *keep_text(const char *text, void *count)
{
    uint32_t n = 0;
    while (find_barrier(text, n))
        n++;
    if (count)
        *(uint32_t *)count = n;
    return memory_text(text);
}

/* Otherwise a barrier could be needless for these masks alone. */
static void test_masks_use_all_code(void **state)
{
    (void)state;
    uint32_t forward = 0, transposed = 0;
    for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
        struct kernel_case c = case_of(masks[m], ABI_SOFTMAX);
        struct error e = {0};
        struct maskc_kernel *k = fixture_load(&c, NULL, NULL, &e);
        if (!k)
            fail_msg("%s", e.text);
        forward |= k->artifact->plan[0].forward.uses;
        transposed |= k->artifact->plan[0].transposed.uses;
        kernel_unload(k);
    }
    const uint32_t shared = 1 << ABI_TILES | 1 << ABI_BLOCKS;
    const uint32_t others = 1 << ABI_DIAGONAL | 1 << ABI_ROWS;
    assert_true(forward & shared && transposed & shared);
    assert_int_equal(forward & others, others);
    assert_int_equal(transposed & others, others);
}

static void test_all_green(void **state)
{
    (void)state;
    assert_false(any_red(keep_text, 0));
}

static void test_each_barrier(void **state)
{
    (void)state;
    struct kernel_case c = case_of(masks[0], ABI_SOFTMAX);
    uint32_t barriers = 0;
    uint64_t size;
    free(fixture_file(&c, keep_text, &barriers, &size));
    assert_true(barriers >= 8);
    for (uint32_t k = 0; k < barriers; k++)
        if (!any_red(delete_barrier, k))
            fail_msg("barrier %u of %u can be deleted and nothing notices", k + 1, barriers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks_use_all_code),
        cmocka_unit_test(test_all_green),
        cmocka_unit_test(test_each_barrier),
    };
    return cmocka_run_group_tests_name("emulated mutation", tests, NULL, NULL);
}
