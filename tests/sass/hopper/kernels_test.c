/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of cuda_hopper as ptxas made them, run instruction by instruction: each kernel shape agrees with float64 and
   with its own text, with bulk copies and products as late as they may happen and at issue. The driver refuses machine code
   that rows_check() complains of. Cases of $MASKC_KNOWN/hopper_kernels.txt are skipped (sample_key.h); --update writes it. */
#include "tests/sass/sample_key.h"
#include "tests/support/cuda_fixture.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* clang-format off */
#define MASKS(...)        {__VA_ARGS__}
#define F(type, dim, ...) {.dtype = ABI_##type, .head_dim = dim, .backward = true, __VA_ARGS__}
#define SHAPE(name)       .family = "cuda_hopper", .shape = name
static const struct sass_case cases[] = {
    {MASKS("causal", "dense"), 260, F(BF16, 64), SHAPE("wide")},
    {MASKS("window(40)|columns(3,77)"), 200, F(F16, 64, .dropout = true), SHAPE("wide")},
    {MASKS("blocks(2)", "causal"), 280, {.dtype = ABI_BF16, .head_dim = 64}, SHAPE("four")},
    {MASKS("longformer(20,2)", "causal"), 150, F(BF16, 64, .dropout = true), SHAPE("narrow")},
    {MASKS("causal", "window(30)|global(0)"), 100, F(F16, 64), {2, 0, MASK_ALIGN_START}, SHAPE("narrow")},
    {MASKS("causal", "window(9)"), 150, F(BF16, 128), SHAPE("deep")},
    {MASKS("random(0.05, seed=4)|rows(5)", "dense"), 130, F(F16, 96, .dropout = true), SHAPE("deep")},
    {MASKS("causal", "dense"), 100, F(BF16, 128), {2, 170, MASK_ALIGN_END}, SHAPE("deep")},
};
/* clang-format on */

static const char target[] = "sm_90a";
static struct cache *cache;
static struct known known;

static void see(const struct artifact *a)
{
    assert_int_equal(a->target[0].launch.forward[0].arguments, PHASE_HOPPER_FORWARD);
}

/* As the text that it was made from: sums have the same order but within a product. */
static void must_follow_text(const struct sass_case *c, const struct maskc_kernel *machine,
                             const struct problem *p)
{
    struct error e = {0};
    struct maskc_kernel *text = setup_try_on("emulated", c, target, cache, &e);
    const double distance = text ? setup_distance(machine, text, p, NULL, &e) : 1;
    kernel_unload(text);
    if (!(distance <= 4e-4))
        fail_msg("%s: off by %g from its text %s", c->mask[0], distance, e.text);
}

static void run_case(void **state)
{
    const struct sass_case *c = *state;
    if (known_skips(&known, sample_key(c, target, see)))
        return;
    struct maskc_kernel *k = setup_load(c, target, cache);
    struct problem p = fixture_problem(k);
    p.dropout = c->request.dropout ? 0.2 : 0;
    must_follow_text(c, k, &p);
    setenv("MASKC_SASS_EARLY", "1", 1);
    must_hold(k, &p, c->mask[0]);
    unsetenv("MASKC_SASS_EARLY");
    must_launch(k, 7, c->mask[0]);
    kernel_unload(k);
}

static int run_sample(void)
{
    struct CMUnitTest tests[COUNT(cases)] = {{0}};
    static char names[COUNT(cases)][80];
    for (size_t k = 0; k < COUNT(cases); k++) {
        const struct kernel_request *f = &cases[k].request;
        snprintf(names[k], sizeof names[k], "%s d %u n %u %s %.30s", dtype_name(f->dtype),
                 f->head_dim, cases[k].n, cases[k].shape, cases[k].mask[0]);
        tests[k] = (struct CMUnitTest){.name = names[k],
                                       .test_func = run_case,
                                       .initial_state = (void *)(uintptr_t)&cases[k]};
    }
    return cmocka_run_group_tests_name("machine code of cuda_hopper", tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_error("usage: kernels_test FOLDER [--update | NAME], FOLDER where this "
                    "libcuda.so.1 is\n");
        return 2;
    }
    const char *missing = setup_machine(argv, argv[1], target);
    if (missing) {
        print_message("skipped: %s\n", missing);
        return 77;
    }
    const bool update = argc > 2 && !strcmp(argv[2], "--update");
    if (argc > 2 && !update)
        cmocka_set_test_filter(argv[2]);
    cache = subject_start();
    known_start(&known, "hopper_kernels", sample_common(), update);
    const int r = known_finish(&known, run_sample());
    subject_finish(cache);
    return r;
}
