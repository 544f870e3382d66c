/* SPDX-License-Identifier: Apache-2.0 */
/* Cases that small random problems do not reach. Steep scores: weights of keys far apart in the plan differ
   by hundreds of binary orders, whichever of them the kernel meets first, and whatever it takes
   scores relative to has to change on the way. Far tensors: more than a core's cache is sure to hold.
   Long rows: more columns than a block. Short sequences: rows that see nothing. Keys that are alone: an LSE near 0
   bears no error of exp2. */
#include "tests/support/known/known_subject.h"
#include "tests/support/test.h"
#include "tools/reference/check.h"
#include <math.h>
#include <string.h>

enum { MAX_TARGETS = 8, N = 300 };

static struct known known;

static uint32_t check_mask(const struct mask *m, const struct target *t,
                           const struct kernel_request *f, struct cache *cache)
{
    static const double scale[] = {4, -40};
    struct maskc_kernel *k = known_load_subject(&known, m, t, f, cache);
    if (!k)
        return 0;
    struct problem p = {.mask = m,
                        .batch = 1,
                        .length = N,
                        .head_dim = f->head_dim,
                        .dtype = f->dtype,
                        .random_seed = 11};
    uint32_t failed = 0;
    for (uint32_t x = 0; x < sizeof scale / sizeof *scale; x++) {
        p.scale = scale[x];
        failed += subject_check(k, &p, false, subject_name(t));
    }
    maskc_kernel_destroy(k);
    return failed;
}

static void test_steep(void **state)
{
    static const char *const name[] = {"dense", "window(20)|global(0,-1)"};
    /* with a backward pass: the kernels of tests below */
    static const struct kernel_request feature[] = {
        {.dtype = ABI_BF16, .head_dim = 64, .backward = true},
        {.dtype = ABI_F32, .head_dim = 64, .backward = true}};
    const struct target *list[MAX_TARGETS];
    uint32_t count = subject_targets(list, MAX_TARGETS) - 1, failed = 0; /* but the GPU */
    for (uint32_t k = 0; k < sizeof name / sizeof *name; k++) {
        struct mask *m = subject_mask(name[k], N);
        for (uint32_t x = 0; x < count * 2; x++)
            if (!subject_repeats(list[x / 2], &feature[x % 2]))
                failed += check_mask(m, list[x / 2], &feature[x % 2], *state);
        mask_destroy(m);
    }
    assert_int_equal(failed, 0);
}

/* Tensors too large to be near: rows are copied, asked for before their turn, and written past the caches. */
static uint32_t check_far(const char *name, struct cache *cache)
{
    const struct target *list[MAX_TARGETS];
    uint32_t count = subject_targets(list, MAX_TARGETS) - 1, failed = 0;
    struct error e = {0};
    struct mask *one = subject_mask(name, N);
    struct mask *m = mask_repeat_heads(one, 16, &e);
    assert_non_null(m);
    const struct kernel_request f = {.dtype = ABI_BF16, .head_dim = 64, .backward = true};
    for (uint32_t t = 0; t < count; t++) {
        struct maskc_kernel *k = known_load_subject(&known, m, list[t], &f, cache);
        if (!k)
            continue;
        struct problem p = {.mask = m,
                            .batch = 4,
                            .length = N,
                            .head_dim = f.head_dim,
                            .dtype = f.dtype,
                            .random_seed = 5};
        failed += subject_check(k, &p, true, subject_name(list[t]));
        maskc_kernel_destroy(k);
    }
    mask_destroy(m);
    mask_destroy(one);
    return failed;
}

static void test_far(void **state)
{
    static const char *const name[] = {"distance(3,9,17,29,41,66,80,101,137,180,222)",
                                       "window(20)|global(0,-1)"};
    uint32_t failed = 0;
    for (uint32_t k = 0; k < sizeof name / sizeof *name; k++)
        failed += check_far(name[k], *state);
    assert_int_equal(failed, 0);
}

static uint32_t check_blocks(const struct mask *m, const struct target *t,
                             const struct kernel_request *f, struct cache *cache)
{
    struct maskc_kernel *k = known_load_subject(&known, m, t, f, cache);
    if (!k)
        return 0;
    const struct problem p = {.mask = m,
                              .batch = 1,
                              .length = m->n,
                              .head_dim = f->head_dim,
                              .dtype = f->dtype,
                              .dropout = f->dropout ? 0.2 : 0,
                              .random_seed = 5};
    const uint32_t failed = subject_check(k, &p, true, subject_name(t));
    maskc_kernel_destroy(k);
    return failed;
}

/* Rows whose columns are in several blocks, without a bias: delta comes from O, its correction from all blocks, and each
   block has its own dropout. A type for each of the best CPU levels; bf16 for the matrix unit, if there is one. */
static void test_blocks(void **state)
{
    static const struct kernel_request feature[] = {
        {.dtype = ABI_BF16, .head_dim = 32, .backward = true, .dropout = true},
        {.dtype = ABI_F32, .head_dim = 32, .backward = true},
        {.dtype = ABI_F16, .head_dim = 32, .backward = true, .dropout = true}};
    const struct target *list[MAX_TARGETS];
    uint32_t count = subject_targets(list, MAX_TARGETS) - 1, failed = 0; /* but the GPU */
    struct mask *m = subject_mask("dense", 600);
    for (uint32_t x = 0; x < sizeof feature / sizeof *feature; x++)
        failed += check_blocks(m, list[x < count ? count - 1 - x : 0], &feature[x], *state);
    mask_destroy(m);
    assert_int_equal(failed, 0);
}

/* The two best CPU levels and the GPU. */
static uint32_t first_of(uint32_t count)
{
    return count > 3 ? count - 3 : 0;
}

/* Sequences so short that a row which stands alone in the plan, or all of them, sees nothing: what the
   backward pass reads for such a query is not uninitialised. */
static void test_short(void **state)
{
    static const int32_t lengths[] = {1, 64, 0, 2};
    static const enum abi_dtype dtype[] = {ABI_BF16, ABI_F32};
    const struct target *list[MAX_TARGETS];
    uint32_t count = subject_targets(list, MAX_TARGETS), failed = 0;
    struct mask *m = subject_mask("distance(1,2,4,7,12)|global(0,-1)-diagonal(0)", 128);
    for (uint32_t x = 2 * first_of(count); x < 2 * count; x++) {
        const struct kernel_request f = {
            .dtype = dtype[x % 2], .head_dim = 64, .backward = true};
        struct maskc_kernel *k = known_load_subject(&known, m, list[x / 2], &f, *state);
        if (!k)
            continue;
        struct problem p = {.mask = m,
                            .batch = sizeof lengths / sizeof *lengths,
                            .length = 128,
                            .lengths = lengths,
                            .head_dim = f.head_dim,
                            .dtype = f.dtype,
                            .random_seed = 3};
        failed += subject_check(k, &p, true, subject_name(list[x / 2]));
        maskc_kernel_destroy(k);
    }
    mask_destroy(m);
    assert_int_equal(failed, 0);
}

/* One key: its weight is 1, however its score was rounded, and the LSE is that score. Kernels have a backward
   pass, which is not asked for: without a bias they are those of the tests above. */
static void test_alone(void **state)
{
    enum { SEEDS = 24 };
    static const enum abi_bias bias[] = {ABI_BIAS_NONE, ABI_BIAS_SCALE};
    const struct target *list[MAX_TARGETS];
    uint32_t count = subject_targets(list, MAX_TARGETS), failed = 0;
    struct mask *m = subject_mask("dense", 1);
    for (uint32_t x = 2 * first_of(count); x < 2 * count; x++) {
        const struct kernel_request f = {
            .dtype = ABI_BF16, .head_dim = 64, .backward = !bias[x % 2], .bias = bias[x % 2]};
        struct maskc_kernel *k = known_load_subject(&known, m, list[x / 2], &f, *state);
        if (!k)
            continue;
        struct problem p = {.mask = m,
                            .batch = 1,
                            .length = 1,
                            .head_dim = f.head_dim,
                            .dtype = f.dtype,
                            .bias = f.bias};
        for (p.random_seed = 1; p.random_seed <= SEEDS; p.random_seed++)
            failed += subject_check(k, &p, false, subject_name(list[x / 2]));
        maskc_kernel_destroy(k);
    }
    mask_destroy(m);
    assert_int_equal(failed, 0);
}

static uint32_t check_alone(const struct mask *m, const struct target *t, enum abi_bias bias,
                            struct cache *cache)
{
    enum { SEEDS = 8 };
    const struct kernel_request f = {
        .dtype = ABI_F32, .head_dim = 256, .backward = true, .bias = bias};
    if (subject_repeats(t, &f))
        return 0;
    struct maskc_kernel *k = known_load_subject(&known, m, t, &f, cache);
    if (!k)
        return 0;
    struct problem p = {.mask = m,
                        .batch = 1,
                        .length = 1,
                        .head_dim = f.head_dim,
                        .dtype = f.dtype,
                        .bias = f.bias,
                        .scale = -1};
    uint32_t failed = 0;
    for (p.random_seed = 1; p.random_seed <= SEEDS; p.random_seed++)
        failed += subject_check(k, &p, true, subject_name(t));
    maskc_kernel_destroy(k);
    return failed;
}

/* Nor has one key a gradient by Q or K: delta is dP, whatever its rounded LSE makes of its weight. What is wrong with
   that is wrong at every level: each has another bias. */
static void test_alone_backward(void **state)
{
    static const enum abi_bias bias[] = {ABI_BIAS_NONE, ABI_BIAS_ADD, ABI_BIAS_SCALE};
    const struct target *list[MAX_TARGETS];
    /* but the GPU: CUDA sums dO O in another order than dP */
    uint32_t count = subject_targets(list, MAX_TARGETS) - 1, failed = 0;
    struct mask *m = subject_mask("dense", 1);
    for (uint32_t t = 0; t < count; t++)
        failed += check_alone(m, list[t], bias[t % 3], *state);
    mask_destroy(m);
    assert_int_equal(failed, 0);
}

/* ---- a NaN ---- */

static const struct nan_case {
    const char *mask;
    uint32_t n;
    struct kernel_request request;
    bool cuda; /* alone: a family of its own there */
} nan_cases[] = {
    {"window(20)|global(0,-1)", N, {.dtype = ABI_F32, .head_dim = 64, .backward = true}},
    {"window(20)|global(0,-1)", N, {.dtype = ABI_BF16, .head_dim = 64, .backward = true}},
    {"window(20)|global(0,-1)", N, {.dtype = ABI_BF16, .head_dim = 200}, true}, /* tiled */
    {"window(20)|global(0,-1)",
     N,
     {.dtype = ABI_F32, .head_dim = 64, .transform = ABI_SPARSEGEN, .lambda = -1}},
    {"window(20)|global(0,-1)",
     N,
     {.dtype = ABI_BF16, .head_dim = 64, .transform = ABI_SPARSEGEN, .lambda = -1}},
    {"window(20)|global(0,-1)",
     100,
     {.dtype = ABI_BF16, .head_dim = 64, .transform = ABI_SPARSEGEN, .lambda = -1},
     true}, /* resident */
};

/* Numbers that are put into a row of Q, or of K. Infinity gives a query scores of +inf, less which they are NaN. */
static const struct nan {
    bool key;
    uint32_t row, bits;
} nans[] = {
    {false, 77, 0x7fc00000}, {false, 0, 0x7fc00000},  {false, 77, 0x7fffffff}, /* a GPU's */
    {false, 77, 0xffffffff}, {false, 77, 0x7f800000}, {true, 77, 0x7fc00000},
    {true, 77, 0x7fffffff},
};

/* O and LSE are NaN in the rows that see the number, and nowhere else. */
static uint32_t check_nan(const struct maskc_kernel *k, const struct problem *p,
                          const struct nan *is, const char *what)
{
    const uint32_t d = p->head_dim;
    struct error e = {0};
    struct problem_data *data = problem_inputs(p);
    float number;
    memcpy(&number, &is->bits, sizeof number);
    (is->key ? data->k : data->q)[is->row * d] = (double)number;
    assert_int_equal(kernel_run_problem(k, p, data, false, 1, &e), 0);
    uint32_t failed = 0;
    for (uint32_t r = 0; r < p->length; r++) {
        const bool nan =
            is->key ? pattern_test(mask_pattern(p->mask, 0, 0), r, is->row) : r == is->row;
        failed += isnan(data->lse[r]) != nan || isnan(data->o[r * d]) != nan;
    }
    if (failed)
        print_error("%s: %s: %08x in row %u of %s: %u rows are wrong, O %g, LSE %g\n", what,
                    dtype_name(p->dtype), is->bits, is->row, is->key ? "K" : "Q", failed,
                    data->o[is->row * d], data->lse[is->row]);
    problem_data_destroy(data);
    return failed;
}

static uint32_t check_nans(const struct nan_case *c, const struct target *t,
                           struct cache *cache)
{
    struct mask *m = subject_mask(c->mask, c->n);
    struct maskc_kernel *k = known_load_subject(&known, m, t, &c->request, cache);
    const struct problem p = {.mask = m,
                              .batch = 1,
                              .length = c->n,
                              .head_dim = c->request.head_dim,
                              .dtype = c->request.dtype,
                              .transform = c->request.transform,
                              .lambda = -1};
    uint32_t failed = 0;
    for (uint32_t x = 0; k && x < sizeof nans / sizeof *nans; x++)
        failed += check_nan(k, &p, &nans[x], subject_name(t));
    maskc_kernel_destroy(k);
    mask_destroy(m);
    return failed;
}

/* A NaN among the numbers of a query or a key is seen in O and LSE of the queries that see it, and nowhere else. */
static void test_nan(void **state)
{
    const struct target *list[MAX_TARGETS];
    uint32_t count = subject_targets(list, MAX_TARGETS), failed = 0;
    for (uint32_t c = 0; c < sizeof nan_cases / sizeof *nan_cases; c++)
        for (uint32_t t = nan_cases[c].cuda ? count - 1 : 0; t < count; t++)
            if (!subject_repeats(list[t], &nan_cases[c].request))
                failed += check_nans(&nan_cases[c], list[t], *state);
    assert_int_equal(failed, 0);
}

int main(int argc, char **argv)
{
    struct cache *cache = subject_start();
    known_start_subject(&known, "extremes", "tests/kernels/cpu/extremes_test.c",
                        argc > 1 && !strcmp(argv[1], "--update"));
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_steep, cache),
                                       cmocka_unit_test_prestate(test_nan, cache),
                                       cmocka_unit_test_prestate(test_far, cache),
                                       cmocka_unit_test_prestate(test_blocks, cache),
                                       cmocka_unit_test_prestate(test_short, cache),
                                       cmocka_unit_test_prestate(test_alone, cache),
                                       cmocka_unit_test_prestate(test_alone_backward, cache)};
    int failed = cmocka_run_group_tests_name("extremes", tests, NULL, NULL);
    subject_finish(cache);
    return known_finish(&known, failed);
}
