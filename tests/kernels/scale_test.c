/* SPDX-License-Identifier: Apache-2.0 */
/* A scale of zero: is attention uniform over the active keys, with LSE = log(their count) and no gradient of Q and K, in
   every kernel family, on every CPU target and emulated? */
#include "tests/support/known/known_subject.h"
#include "tests/support/test.h"
#include "tools/reference/check.h"
#include <string.h>

enum { MAX_TARGETS = 8, N = 150 };

/* Every family first: matrix and vector kernels of CPUs; on CUDA simt (f32), resident, and tiled (head_dim 200). */
static const struct kernel_request requests[] = {
    {.dtype = ABI_F32, .head_dim = 64, .backward = true},
    {.dtype = ABI_BF16, .head_dim = 64, .backward = true},
    {.dtype = ABI_F16, .head_dim = 200, .backward = true},
    {.dtype = ABI_BF16, .head_dim = 64, .backward = true, .dropout = true},
    {.dtype = ABI_BF16, .head_dim = 64, .backward = true, .bias = ABI_BIAS_ADD},
    {.dtype = ABI_F32, .head_dim = 64, .backward = true, .bias = ABI_BIAS_SCALE},
    {.dtype = ABI_F32,
     .head_dim = 64,
     .backward = true,
     .transform = ABI_SPARSEGEN,
     .lambda = -4},
    {.dtype = ABI_BF16,
     .head_dim = 64,
     .backward = true,
     .transform = ABI_SPARSEGEN,
     .lambda = -4},
};

static bool all_are_zero(const double *x, uint64_t count)
{
    for (uint64_t k = 0; k < count; k++)
        if (x[k] != 0)
            return false;
    return true;
}

/* Checks the gradients of Q and K for exact zeros. */
static uint32_t check_zeros(const struct maskc_kernel *k, const struct problem *p,
                            const char *what)
{
    struct error e = {0};
    struct problem_data *d = problem_inputs(p);
    if (kernel_run_problem(k, p, d, true, 2, &e) < 0)
        fail_msg("%s", e.text);
    const bool ok = all_are_zero(d->d_q, problem_elements(p)) &&
                    all_are_zero(d->d_k, problem_key_elements(p));
    if (!ok)
        print_message("%s: a gradient of Q or K is not zero\n", what);
    problem_data_destroy(d);
    return !ok;
}

static struct known known;

static uint32_t check_target(const struct mask *m, const struct target *t,
                             const struct kernel_request *f, struct cache *cache)
{
    static const int32_t lengths[] = {N, 0, 70};
    static const double scale[] = {0, -0.0};
    struct maskc_kernel *k = known_load_subject(&known, m, t, f, cache);
    if (!k)
        return 0;
    uint32_t failed = 0;
    struct problem p = problem_of(k);
    p.batch = sizeof lengths / sizeof *lengths;
    p.lengths = lengths;
    p.scale_given = true;
    p.dropout = f->dropout ? 0.25 : 0;
    for (uint32_t x = 0; x < sizeof scale / sizeof *scale; x++) {
        p.scale = scale[x];
        p.packed = x == 1;
        failed += subject_check(k, &p, true, subject_name(t));
        failed += check_zeros(k, &p, subject_name(t));
    }
    maskc_kernel_destroy(k);
    return failed;
}

/* True for the requests from the fourth on, on targets that differ from x86-64-v3 only in their vectors. */
static bool is_left_out(const struct target *t, uint32_t request)
{
    return request > 2 && (!strcmp(t->name, "x86-64-v2") || !strcmp(t->name, "x86-64-v4"));
}

static void scale_0_is_uniform_attention(void **state)
{
    const struct target *list[MAX_TARGETS];
    const uint32_t count = subject_targets(list, MAX_TARGETS);
    uint32_t failed = 0, checked = 0;
    struct mask *m = subject_mask("distance(1,2,4,7,12,40)|global(0,-1)-diagonal(0)", N);
    for (uint32_t f = 0; f < sizeof requests / sizeof *requests; f++)
        for (uint32_t t = 0; t < count; t++)
            if (!subject_repeats(list[t], &requests[f]) && !is_left_out(list[t], f)) {
                failed += check_target(m, list[t], &requests[f], *state);
                checked++;
            }
    mask_destroy(m);
    assert_true(checked >= sizeof requests / sizeof *requests);
    assert_int_equal(failed, 0);
}

static int start(void **state)
{
    *state = subject_start();
    return 0;
}

static int finish(void **state)
{
    subject_finish(*state);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(scale_0_is_uniform_attention)};
    known_start_subject(&known, "scale", "tests/kernels/scale_test.c",
                        argc > 1 && !strcmp(argv[1], "--update"));
    return known_finish(&known, cmocka_run_group_tests(tests, start, finish));
}
