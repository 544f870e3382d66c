/* SPDX-License-Identifier: Apache-2.0 */
/* Biases beyond the covering array: items longer than a block of columns, batches that are
   worked on in slices, whatever X holds where the mask is off, a bias of -inf, and gradients that
   are not asked for. bias_cuda_test.c has more of the CUDA kernels. */
#include "masks/base/memory.h"
#include "tests/support/subject.h"
#include "tests/support/test.h"
#include "tools/reference/check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TARGETS = 8, DIM = 16 };

static struct problem make_problem(const struct mask *m, const struct kernel_request *f)
{
    return (struct problem){.mask = m,
                            .batch = 1,
                            .length = m->n,
                            .head_dim = f->head_dim,
                            .dtype = f->dtype,
                            .transform = f->transform,
                            .lambda = (double)f->lambda,
                            .bias = f->bias,
                            .dropout = f->dropout ? 0.2 : 0,
                            .random_seed = 5};
}

static struct kernel_request make_request(uint32_t variant)
{
    return (struct kernel_request){
        .head_dim = DIM,
        .backward = true,
        .dropout = variant % 4 == 2, /* over lists */
        .dtype = (enum abi_dtype)(variant % 3),
        .bias = (enum abi_bias)(1 + variant / 3 % 2),
        .transform = variant / 6 % 2 ? ABI_SPARSEGEN : ABI_SOFTMAX,
        .lambda = variant / 6 % 2 ? -4 : 0,
    };
}
enum { VARIANTS = 12 };

/* More columns than a block has, by every lowering. A variant is compiled for one level, the same in all tests. */
static void test_long(void **state)
{
    static const char *const name[] = {"dense", "window(3) | global(0) - diagonal(0)",
                                       "random(0.05)", "causal & random(0.9)"};
    const struct target *list[MAX_TARGETS];
    uint32_t count = subject_targets(list, MAX_TARGETS), wrong = 0;
    for (uint32_t k = 0; k < VARIANTS; k++) {
        struct kernel_request f = make_request(k);
        struct mask *m = subject_mask(name[k % 4], 1100 + k);
        const struct target *t = list[k % (count - 1)]; /* the last is not a CPU */
        struct maskc_kernel *kernel = subject_load(m, t, &f, *state);
        struct problem p = make_problem(m, &f);
        wrong += subject_check(kernel, &p, true, name[k % 4]);
        maskc_kernel_destroy(kernel);
        mask_destroy(m);
    }
    assert_int_equal(wrong, 0);
}

static void check_same(const double *a, const double *b, uint64_t count)
{
    assert_memory_equal(a, b, count * sizeof *a);
}

/* Many sequences of different lengths: several slices, and the same bits for any number of
   threads. */
static void test_batch(void **state)
{
    enum { BATCH = 70, N = 96 };
    static const uint32_t threads[] = {0, 2, 3};
    const struct target *list[MAX_TARGETS];
    const uint32_t levels = subject_targets(list, MAX_TARGETS) - 1;
    int32_t lengths[BATCH];
    for (int b = 0; b < BATCH; b++)
        lengths[b] = b * 37 % (N + 1);
    struct mask *m = subject_mask("window(9) | global(0)", N);
    for (uint32_t k = 0; k < VARIANTS; k += 5) {
        struct error e = {0};
        struct kernel_request f = make_request(k);
        struct maskc_kernel *kernel = subject_load(m, list[k % levels], &f, *state);
        struct problem p = make_problem(m, &f);
        p.batch = BATCH;
        p.lengths = lengths;
        assert_int_equal(subject_check(kernel, &p, true, "batch"), 0);
        struct problem_data *first = problem_inputs(&p), *again = problem_data_copy(&p, first);
        assert_int_equal(kernel_run_problem(kernel, &p, first, true, 1, &e), 0);
        for (int t = 0; t < 3; t++) {
            assert_int_equal(kernel_run_problem(kernel, &p, again, true, threads[t], &e), 0);
            check_same(first->d_x, again->d_x, problem_bias_elements(&p));
            check_same(first->d_diagonal, again->d_diagonal, problem_diagonal_elements(&p));
        }
        problem_data_destroy(first);
        problem_data_destroy(again);
        maskc_kernel_destroy(kernel);
    }
    mask_destroy(m);
}

/* Fills X with NaN and infinity where no key is active: kernels ignore it there, and its gradient is 0. A bias of
   -inf removes a key, as in the reference: every third entry, and all of row 7. */
static void spoil(const struct problem *p, double *x)
{
    for (uint64_t k = 0; k < problem_bias_elements(p); k++) {
        uint64_t n = p->mask->n, h = k / (n * n), i = k / n % n, j = k % n;
        if (!pattern_test(mask_pattern(p->mask, 0, (uint32_t)h), (uint32_t)i, (uint32_t)j))
            x[k] = k % 2 ? NAN : INFINITY;
        else if (p->bias == ABI_BIAS_ADD && (k % 3 == 0 || i == 7))
            x[k] = -INFINITY;
    }
}

static void check_spoiled(const struct maskc_kernel *k, const struct problem *p)
{
    struct error e = {0};
    struct problem_data *a = problem_inputs(p);
    spoil(p, a->x);
    struct problem_data *b = problem_data_copy(p, a), *c = problem_data_copy(p, a);
    assert_int_equal(kernel_run_problem(k, p, a, true, 0, &e), 0);
    reference_run(p, b, true);
    reference_plain(p, c, true);
    const uint64_t size = problem_elements(p), bias = problem_bias_elements(p);
    const double *all[][3] = {{a->o, b->o, c->o},
                              {a->d_q, b->d_q, c->d_q},
                              {a->d_k, b->d_k, c->d_k},
                              {a->d_v, b->d_v, c->d_v},
                              {a->d_x, b->d_x, c->d_x}};
    for (int t = 0; t < 5; t++) {
        uint64_t count = t == 4 ? bias : size;
        double parts = t == 4 ? b->d_x_parts : 0;
        double plain = error_of_difference(all[t][2], all[t][1], count, parts);
        assert_true(isfinite(plain));
        assert_true(error_of_difference(all[t][0], all[t][1], count, parts) <=
                    fmax(1e-5, 1.5 * plain));
    }
    assert_true(error_measure(a->lse, b->lse, size / p->head_dim) <= 1e-5);
    for (uint64_t x = 0; x < bias; x++)
        if (!isfinite(a->x[x]))
            assert_true(a->d_x[x] == 0);
    problem_data_destroy(a);
    problem_data_destroy(b);
    problem_data_destroy(c);
}

static void run_spoiled(uint32_t variant, const struct target *t, struct cache *cache)
{
    static const char *const name[] = {"window(4) | global(0)", "random(0.3)",
                                       "causal & random(0.95)", "local(24)"};
    struct mask *m = subject_mask(name[variant % 4], 75);
    struct kernel_request f = make_request(variant);
    struct maskc_kernel *kernel = subject_load(m, t, &f, cache);
    struct problem p = make_problem(m, &f);
    p.batch = 2;
    check_spoiled(kernel, &p);
    maskc_kernel_destroy(kernel);
    mask_destroy(m);
}

static void test_spoiled(void **state)
{
    static const uint32_t on_cuda[] = {0, 1, 3, 5, 6, 7, 10};
    const struct target *list[MAX_TARGETS];
    uint32_t count = subject_targets(list, MAX_TARGETS);
    for (uint32_t k = 0; k < VARIANTS; k++)
        run_spoiled(k, list[k % (count - 1)], *state);
    for (uint32_t k = 0; k < sizeof on_cuda / sizeof *on_cuda; k++)
        run_spoiled(on_cuda[k], list[count - 1], *state);
}

/* Either gradient alone is what both together give, and none is fine. */
static void run_parts(const struct target *target, struct cache *cache)
{
    enum { N = 50, ELEMENTS = N * DIM, LINES = 2 * N - 1 };
    struct mask *m = subject_mask("window(6)", N);
    struct kernel_request f = make_request(0);
    struct maskc_kernel *k = subject_load(m, target, &f, cache);
    float *storage = memory_aligned(9 * ELEMENTS + N * N, sizeof *storage);
    float whole[2][N * N], lines[2][LINES];
    struct maskc_tensor t[8];
    for (int x = 0; x < 9 * ELEMENTS + N * N; x++)
        storage[x] = (float)(x * 7 % 19) / 8 - 1;
    for (int x = 0; x < 8; x++)
        t[x] = (struct maskc_tensor){.data = storage + x * ELEMENTS};
    for (int asked = 0; asked < 4; asked++) {
        struct maskc_error e;
        struct maskc_launch l = {.struct_size = sizeof l,
                                 .query = t[0],
                                 .key = t[1],
                                 .value = t[2],
                                 .out = t[3],
                                 .grad_out = t[4],
                                 .grad_query = t[5],
                                 .grad_key = t[6],
                                 .grad_value = t[7],
                                 .lse = storage + 8 * ELEMENTS,
                                 .soft = storage + 9 * ELEMENTS};
        for (int pass = 0; pass < 2; pass++) {
            l.pass = (enum maskc_pass)pass;
            l.grad_soft = pass && asked & 1 ? whole[asked == 3] : NULL;
            l.grad_soft_diagonals = pass && asked & 2 ? lines[asked == 3] : NULL;
            l.workspace_bytes = maskc_workspace_bytes(k, &l);
            l.workspace = memory_aligned(l.workspace_bytes, 1);
            if (maskc_run(k, &l, &e))
                fail_msg("%s", e.text);
            free(l.workspace);
        }
    }
    assert_memory_equal(whole[0], whole[1], sizeof whole[0]);
    assert_memory_equal(lines[0], lines[1], sizeof lines[0]);
    free(storage);
    maskc_kernel_destroy(k);
    mask_destroy(m);
}

static void test_parts(void **state)
{
    const struct target *list[MAX_TARGETS];
    uint32_t count = subject_targets(list, MAX_TARGETS);
    run_parts(list[0], *state);
    run_parts(list[count - 1], *state);
}

int main(void)
{
    struct cache *cache = subject_start();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_long, cache),
        cmocka_unit_test_prestate(test_batch, cache),
        cmocka_unit_test_prestate(test_spoiled, cache),
        cmocka_unit_test_prestate(test_parts, cache),
    };
    int failed = cmocka_run_group_tests_name("soft masks", tests, NULL, NULL);
    subject_finish(cache);
    return failed;
}
