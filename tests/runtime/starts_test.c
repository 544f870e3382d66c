/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel for all lengths: a launch of fewer rows than the mask, packed or padded on either side, is the reference
   with the mask's corner, forward and backward; where a sequence stands changes none of its bits. */
#include "runtime/compile/compile.h"
#include "tests/support/program/options.h"
#include "tests/support/subject.h"
#include "tests/support/test.h"
#include "tools/reference/check.h"
#include <stdlib.h>
#include <string.h>

enum { N = 144, D = 64, BATCH = 4, HEADS = 3 };

static struct cache *cache;
static int every = 1; /* --few: every third mask */

static const char *const masks[] = {
    "longformer",           "window(9)",   "stride(16) | window(3)",
    "random(0.03)",         "random(0.5)", "random(0.2)",
    "rows(7, 140)",         "causal",      "fixed",
    "distance(0, 40, 140)",
};

enum { MASKS = sizeof masks / sizeof *masks };

/* Kernels that differ in what reads rows: vectors and matrix units, all features. */
static const struct {
    const char *name;
    struct kernel_request request;
} kinds[] = {
    {"f32", {.head_dim = D, .backward = true}},
    {"f32 bias", {.head_dim = D, .backward = true, .bias = ABI_BIAS_ADD}},
    {"bf16 dropout", {.head_dim = D, .backward = true, .dtype = ABI_BF16, .dropout = true}},
    {"f32 sparsegen",
     {.head_dim = D, .backward = true, .transform = ABI_SPARSEGEN, .lambda = 0.5f}},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct target *target_here(const struct kernel_request *r)
{
    struct error e = {0};
    return target_find(machine_cpu_target(r), &e);
}

static struct maskc_kernel *load(int kind, const char *name)
{
    struct error e = {0};
    struct mask *one = subject_mask(name, N), *m = mask_repeat_heads(one, HEADS, &e);
    struct maskc_kernel *k =
        subject_load(m, target_here(&kinds[kind].request), &kinds[kind].request, cache);
    mask_destroy(m);
    mask_destroy(one);
    return k;
}

static struct problem shorter_problem(const struct maskc_kernel *k, uint32_t length,
                                      uint64_t seed)
{
    struct problem p = problem_of(k);
    p.batch = BATCH;
    p.length = length;
    p.dropout = k->artifact->request.dropout ? 0.2 : 0;
    p.seed = seed + 7;
    p.random_seed = seed;
    p.layout = seed % 3;
    return p;
}

/* Padded, packed, and padded on both sides; seeds draw lengths and starts. */
static uint32_t check_launches(const struct maskc_kernel *k, uint32_t length, uint64_t seed,
                               const char *what)
{
    int32_t lengths[BATCH], starts[BATCH];
    uint32_t failed = 0, word[4];
    for (uint32_t b = 0; b < BATCH; b++) {
        reference_philox((const uint32_t[4]){b}, (const uint32_t[2]){(uint32_t)seed, length},
                         word);
        starts[b] = (int32_t)(word[0] % (length + 1));
        lengths[b] = (int32_t)(word[1] % (length - (uint32_t)starts[b] + 1));
    }
    starts[BATCH - 1] = 0; /* some sequence has tokens */
    lengths[BATCH - 1] = (int32_t)length;
    struct problem plain = shorter_problem(k, length, seed), packed = plain, left = plain,
                   right = plain;
    packed.lengths = left.lengths = right.lengths = lengths;
    packed.packed = true;
    left.starts = starts;
    failed += subject_check(k, &plain, true, what);
    failed += subject_check(k, &packed, true, what);
    failed += subject_check(k, &left, true, what);
    left.lengths = NULL; /* to the end: padding on the left alone */
    failed += subject_check(k, &left, true, what);
    return failed;
}

static void shorter_launches_are_the_corner(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {1, 31, 64, 97, 143};
    int checked = 0;
    for (int kind = 0; kind < KINDS; kind++)
        for (int m = kind % every; m < MASKS; m += every) {
            struct maskc_kernel *k = load(kind, masks[m]);
            const uint32_t length = lengths[(m + kind) % 5];
            assert_int_equal(check_launches(k, length, (uint64_t)(m * KINDS + kind), masks[m]),
                             0);
            maskc_kernel_destroy(k);
            checked++;
        }
    assert_true(checked >= KINDS * (MASKS / every));
}

/* ---- equal bits ---- */

static void compare(const struct problem *p, const struct problem_data *a,
                    const struct problem_data *b, const char *what)
{
    const uint64_t bytes = problem_elements(p) * sizeof(double);
    const double *x[] = {a->o, a->d_q, a->d_k, a->d_v}, *y[] = {b->o, b->d_q, b->d_k, b->d_v};
    for (int k = 0; k < 4; k++)
        if (memcmp(x[k], y[k], bytes) != 0)
            fail_msg("%s: tensor %d has other bits", what, k);
    assert_memory_equal(a->lse, b->lse, bytes / p->head_dim);
    if (p->bias)
        assert_memory_equal(a->d_x, b->d_x, problem_bias_elements(p) * sizeof(double));
}

/* The same sequences at the front and further back, with one thread and several. */
static void where_a_sequence_stands_changes_no_bit(void **state)
{
    (void)state;
    const int32_t lengths[BATCH] = {40, 0, 123, 77}, starts[BATCH] = {100, 140, 17, 63};
    const int32_t front[BATCH] = {0};
    for (int kind = 0; kind < KINDS; kind++)
        for (uint32_t threads = 1; threads < 5; threads += 3) {
            struct error e = {0};
            struct maskc_kernel *k = load(kind, "longformer");
            struct problem p = shorter_problem(k, 140, 5);
            p.lengths = lengths;
            struct problem_data *a = problem_inputs(&p), *b = problem_data_copy(&p, a);
            assert_int_equal(kernel_run_problem(k, &p, a, true, threads, &e), 0);
            p.starts = starts;
            if (kernel_run_problem(k, &p, b, true, threads, &e))
                fail_msg("%s", e.text);
            compare(&p, a, b, kinds[kind].name);
            p.starts = front; /* all 0: as none */
            assert_int_equal(kernel_run_problem(k, &p, b, true, threads, &e), 0);
            compare(&p, a, b, kinds[kind].name);
            problem_data_destroy(a);
            problem_data_destroy(b);
            maskc_kernel_destroy(k);
        }
}

/* ---- refused ---- */

static void refuse(const struct maskc_kernel *k, struct problem p, const char *text)
{
    struct error e = {0};
    struct problem_data *d = problem_inputs(&(struct problem){
        .mask = p.mask, .batch = p.batch, .length = p.length, .head_dim = p.head_dim});
    assert_int_equal(kernel_run_problem(k, &p, d, false, 1, &e), -1);
    assert_string_equal(e.text, text);
    problem_data_destroy(d);
}

static void wrong_starts_are_refused(void **state)
{
    (void)state;
    struct maskc_kernel *k = load(0, "window(9)");
    struct problem p = shorter_problem(k, 100, 0);
    p.batch = 2;
    p.layout = LAYOUT_BNHD;
    p.starts = (const int32_t[]){0, 101};
    p.lengths = (const int32_t[]){5, 0};
    refuse(k, p, "launch: starts[1] = 101 with a length of 0 is not within the 100 rows");
    p.starts = (const int32_t[]){-1, 0};
    refuse(k, p, "launch: starts[0] = -1 with a length of 5 is not within the 100 rows");
    p.starts = (const int32_t[]){0, 50};
    p.lengths = (const int32_t[]){100, 51};
    refuse(k, p, "launch: starts[1] = 50 with a length of 51 is not within the 100 rows");
    p.packed = true;
    refuse(k, p, "launch: starts and offsets exclude each other");
    maskc_kernel_destroy(k);
}

static int start(void **state)
{
    (void)state;
    cache = subject_start();
    return 0;
}

static int finish(void **state)
{
    (void)state;
    subject_finish(cache);
    return 0;
}

int main(int argc, char **argv)
{
    every = test_option(argc, argv, "--few") ? 3 : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shorter_launches_are_the_corner),
        cmocka_unit_test(where_a_sequence_stands_changes_no_bit),
        cmocka_unit_test(wrong_starts_are_refused),
    };
    return cmocka_run_group_tests_name("runtime/starts", tests, start, finish);
}
