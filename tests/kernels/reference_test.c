/* SPDX-License-Identifier: Apache-2.0 */
/* The reference itself: its gradients against finite differences, its random numbers against
   Random123's published vectors, and properties that hold for any right attention. */
#include "masks/base/memory.h"
#include "tests/support/test.h"
#include "tools/reference/check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 9, HEADS = 2, DIM = 8, BATCH = 2 };

/* Two heads; row 4 of head 0 is empty, and row 0 of head 1 sees itself alone. */
static struct mask *make_mask(void)
{
    struct pattern *given[HEADS];
    for (uint32_t h = 0; h < HEADS; h++) {
        uint8_t bytes[N * N];
        for (uint32_t i = 0; i < N; i++)
            for (uint32_t j = 0; j < N; j++)
                bytes[i * N + j] = h ? j <= i : (i * 5 + j * 3) % 4 < 2 && i != 4;
        given[h] = pattern_from_bytes(bytes, N, N);
    }
    return mask_new(1, HEADS, given, "test");
}

static double loss(const struct problem *p, const struct problem_data *d)
{
    struct problem_data *again = problem_data_copy(p, d);
    reference_run(p, again, false);
    double sum = 0;
    for (uint64_t k = 0; k < problem_elements(p); k++)
        sum += again->o[k] * again->d_o[k];
    problem_data_destroy(again);
    return sum;
}

static void check_gradient(const struct problem *p, const struct problem_data *d, double *input,
                           const double *gradient, uint64_t count)
{
    const double step = 1e-6;
    for (uint64_t k = 0; k < count; k++) {
        double old = input[k];
        input[k] = old + step;
        double above = loss(p, d);
        input[k] = old - step;
        double below = loss(p, d);
        input[k] = old;
        double slope = (above - below) / (2 * step);
        if (fabs(slope - gradient[k]) > 1e-7)
            fail_msg("element %llu: %.9g by differences, %.9g by the reference",
                     (unsigned long long)k, slope, gradient[k]);
    }
}

/* One offset at a time. */
static void check_diagonals(const struct problem *p, const struct problem_data *d)
{
    if (!p->bias)
        return;
    for (uint32_t h = 0; h < HEADS; h++)
        for (int o = -(N - 1); o < N; o++) {
            double sum = 0;
            for (int i = 0; i < N; i++)
                if (i + o >= 0 && i + o < N)
                    sum += d->d_x[(h * N + (uint32_t)i) * N + (uint32_t)(i + o)];
            assert_true(fabs(sum - d->d_diagonal[h * (2 * N - 1) + (uint32_t)(o + N - 1)]) <
                        1e-12);
        }
}

static void test_finite_differences(void **state)
{
    (void)state;
    struct mask *m = make_mask();
    const int32_t lengths[BATCH] = {N, 6};
    for (int variant = 0; variant < 24; variant++) {
        struct problem p = {
            .mask = m,
            .batch = BATCH,
            .length = N,
            .head_dim = DIM,
            .transform = variant & 1 ? ABI_SPARSEGEN : ABI_SOFTMAX,
            .lambda = -4,
            .dropout = variant & 2 ? 0.25 : 0,
            .lengths = variant & 4 ? lengths : NULL,
            .scale = variant & 4 ? 0.7 : 0,
            .bias = (enum abi_bias)(variant / 8),
            .seed = 7,
            .random_seed = 11,
        };
        struct problem_data *d = problem_inputs(&p);
        reference_run(&p, d, true);
        uint64_t size = problem_elements(&p);
        check_gradient(&p, d, d->q, d->d_q, size);
        check_gradient(&p, d, d->k, d->d_k, size);
        check_gradient(&p, d, d->v, d->d_v, size);
        check_gradient(&p, d, d->x, d->d_x, problem_bias_elements(&p));
        check_diagonals(&p, d);
        problem_data_destroy(d);
    }
    mask_destroy(m);
}

/* The value that P must sum to a row of: with V = 1 everywhere, O is 1, or 0 in an empty row. */
static void test_rows_sum_to_one(void **state)
{
    (void)state;
    struct mask *m = make_mask();
    for (int transform = ABI_SOFTMAX; transform <= ABI_SPARSEGEN; transform++) {
        struct problem p = {.mask = m,
                            .batch = 1,
                            .length = N,
                            .head_dim = DIM,
                            .transform = (enum abi_transform)transform,
                            .lambda = 0.5};
        struct problem_data *d = problem_inputs(&p);
        for (uint64_t k = 0; k < problem_elements(&p); k++)
            d->v[k] = 1;
        reference_run(&p, d, true);
        for (uint32_t i = 0; i < N; i++)
            for (uint32_t h = 0; h < HEADS; h++) {
                bool empty = h == 0 && i == 4;
                assert_true(fabs(d->o[(i * HEADS + h) * DIM] - !empty) < 1e-12);
                assert_int_equal(isinf(d->lse[h * N + i]) != 0, empty);
            }
        problem_data_destroy(d);
    }
    mask_destroy(m);
}

/* A sample's rows are those of the whole, and so are the gradients of a d_o that is 0 elsewhere. */
static void test_sample(void **state)
{
    (void)state;
    struct mask *m = make_mask();
    const uint8_t sample[N] = {1, 0, 0, 1, 1, 0, 0, 0, 1};
    struct problem part = {
        .mask = m, .batch = BATCH, .length = N, .head_dim = DIM, .sample = sample};
    struct problem whole = part;
    struct problem_data *a = problem_inputs(&part), *b = problem_data_copy(&part, a);
    whole.sample = NULL;
    reference_run(&part, a, true);
    reference_run(&whole, b, true);
    uint64_t size = problem_elements(&part), rows = problem_keep_sample(&part, a);
    assert_int_equal(rows, 4 * size / N);
    assert_int_equal(problem_keep_sample(&whole, b), size);
    assert_int_equal(problem_keep_sample(&part, b), rows);
    assert_true(error_measure(a->o, b->o, rows) == 0);
    assert_true(error_measure(a->lse, b->lse, rows / DIM) == 0);
    assert_true(error_measure(a->d_q, b->d_q, rows) == 0);
    assert_true(error_measure(a->d_k, b->d_k, size) == 0);
    assert_true(error_measure(a->d_v, b->d_v, size) == 0);
    problem_data_destroy(a);
    problem_data_destroy(b);
    mask_destroy(m);
}

static void check_plain(const struct mask *m, enum abi_dtype dtype, double tolerance)
{
    for (int variant = 0; variant < 6; variant++) {
        struct problem p = {.mask = m,
                            .batch = BATCH,
                            .length = N,
                            .head_dim = DIM,
                            .dtype = dtype,
                            .dropout = 0.1,
                            .transform = (enum abi_transform)(variant % 2),
                            .lambda = -4,
                            .bias = (enum abi_bias)(variant / 2),
                            .random_seed = 5};
        struct problem_data *a = problem_inputs(&p), *b = problem_data_copy(&p, a);
        reference_run(&p, a, true);
        reference_plain(&p, b, true);
        const double *pair[][2] = {
            {b->o, a->o}, {b->d_q, a->d_q}, {b->d_k, a->d_k}, {b->d_v, a->d_v}};
        for (int k = 0; k < 4; k++) {
            double error = error_measure(pair[k][0], pair[k][1], problem_elements(&p));
            assert_true(error > 0 && error < tolerance);
        }
        if (p.bias)
            assert_true(error_measure(b->d_x, a->d_x, problem_bias_elements(&p)) < tolerance);
        problem_data_destroy(a);
        problem_data_destroy(b);
    }
}

static void test_plain_is_near(void **state)
{
    (void)state;
    struct mask *m = make_mask();
    check_plain(m, ABI_F32, 1e-6);
    check_plain(m, ABI_F16, 2e-3);
    check_plain(m, ABI_BF16, 1e-2);
    mask_destroy(m);
}

static void test_philox(void **state)
{
    (void)state;
    /* Random123's kat_vectors, philox4x32 with 10 rounds. */
    static const uint32_t vector[][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (unsigned k = 0; k < sizeof vector / sizeof *vector; k++) {
        uint32_t word[4];
        reference_philox(vector[k], vector[k] + 4, word);
        assert_memory_equal(word, vector[k] + 6, sizeof word);
    }
}

/* One call serves rows {g, g + 8} x columns {2t, 2t + 1, 2t + 8, 2t + 9} of a 16 x 16 tile. */
static void test_draws(void **state)
{
    (void)state;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 64; i++)
        for (uint32_t j = 0; j < 64; j++)
            sum += reference_draw(3, 1, 2, i, j);
    assert_true(fabs((double)sum / 4096 / 65536 - 0.5) < 0.02);
    const uint32_t counter[4] = {1 * 8 + 3, 2 * 4 + 2, 5, 6}, key[2] = {0x89abcdef, 0x01234567};
    uint32_t word[4];
    reference_philox(counter, key, word);
    uint64_t seed = UINT64_C(0x0123456789abcdef);
    assert_int_equal(reference_draw(seed, 5, 6, 16 + 3, 32 + 4), word[0] & 0xffff);
    assert_int_equal(reference_draw(seed, 5, 6, 16 + 11, 32 + 4), word[0] >> 16);
    assert_int_equal(reference_draw(seed, 5, 6, 16 + 3, 32 + 12), word[1] & 0xffff);
    assert_int_equal(reference_draw(seed, 5, 6, 16 + 3, 32 + 5), word[2] & 0xffff);
    assert_int_equal(reference_draw(seed, 5, 6, 16 + 11, 32 + 13), word[3] >> 16);
}

static void test_error_measure(void **state)
{
    (void)state;
    const double a[] = {3, 4, -INFINITY}, b[] = {3, 4.5, -INFINITY}, c[] = {3, NAN, -INFINITY};
    assert_true(error_measure(a, a, 3) == 0);
    assert_true(fabs(error_measure(a, b, 3) - 0.5 / hypot(3, 4.5)) < 1e-15);
    assert_true(isinf(error_measure(c, a, 3)) && isinf(error_measure(a, c, 3)));
    assert_true(isinf(error_measure(c, c, 3)));
    assert_true(isinf(error_measure(a + 2, b, 1)) && isinf(error_measure(b, a + 2, 1)));
    const double tiny[] = {0.01, 0, 0, 0}, zero[4] = {0};
    assert_true(fabs(error_measure(tiny, zero, 4) - 0.05) < 1e-15);
}

/* One key: P = 1, and delta is dP. What is left of dX is rounding, which is relative to dP; a kernel that
   forgot delta is wrong by all of it. */
static void test_difference_of_parts(void **state)
{
    (void)state;
    struct pattern *one = pattern_from_bytes((const uint8_t[]){1}, 1, 1);
    struct mask *m = mask_new(1, 1, &one, "one");
    struct problem p = {
        .mask = m, .batch = 2, .length = 1, .head_dim = 16, .bias = ABI_BIAS_ADD};
    struct problem_data *d = problem_inputs(&p);
    double dp[2] = {0}, norm;
    for (uint32_t k = 0; k < 2 * p.head_dim; k++)
        dp[k / p.head_dim] += d->d_o[k] * d->v[k];
    norm = hypot(dp[0], dp[1]);
    reference_run(&p, d, true);
    assert_true(fabs(d->d_x[0]) < 1e-15 && fabs(d->d_x_parts - norm) < 1e-12 * norm);
    const double forgotten = dp[0] + dp[1], rounded = 1e-7 * norm;
    assert_true(error_of_difference(&rounded, d->d_x, 1, d->d_x_parts) < 1e-5);
    assert_true(error_of_difference(&forgotten, d->d_x, 1, d->d_x_parts) > 1e-2);
    const double b = 3, near = 3.5; /* larger than its parts, or than nothing */
    assert_true(error_of_difference(&near, &b, 1, 2) == error_measure(&near, &b, 1));
    problem_data_destroy(d);
    mask_destroy(m);
}

static void test_rounding(void **state)
{
    (void)state;
    /* clang-format off */
    static const struct { enum abi_dtype dtype; double from, to; } row[] = {
        {ABI_BF16, 1 + 0x1p-8, 1}, {ABI_BF16, 1 + 3 * 0x1p-8, 1 + 0x1p-6}, {ABI_BF16, 3.0e38, 0x1.C4p127},
        {ABI_BF16, 1e39, INFINITY}, {ABI_F16, 1 + 0x1p-11, 1}, {ABI_F16, 65504, 65504},
        {ABI_F16, 65520, INFINITY}, {ABI_F16, 0x1p-24, 0x1p-24}, {ABI_F16, -0x1p-26, -0.0},
        {ABI_F16, 0x1.8p-24, 0x1p-23}, {ABI_F32, 0.1, 0.1f},
    };
    /* clang-format on */
    for (unsigned k = 0; k < sizeof row / sizeof *row; k++) {
        uint8_t bytes[5];
        assert_true(dtype_round(row[k].dtype, row[k].from) == row[k].to);
        dtype_encode(row[k].dtype, row[k].from, bytes + 1);
        assert_true(dtype_decode(row[k].dtype, bytes + 1) == row[k].to);
    }
}

static void test_rounding_tf32(void **state)
{
    (void)state;
    assert_true(dtype_round(ABI_TF32, 1 + 3 * 0x1p-11) == 1 + 0x1p-9);
    uint8_t word[4];
    dtype_encode(ABI_TF32, 1 + 3 * 0x1p-11, word); /* in memory f32 */
    assert_true(dtype_decode(ABI_TF32, word) == 1 + 3 * 0x1p-11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finite_differences),
        cmocka_unit_test(test_rows_sum_to_one),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_plain_is_near),
        cmocka_unit_test(test_philox),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_error_measure),
        cmocka_unit_test(test_difference_of_parts),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_rounding_tf32),
    };
    return cmocka_run_group_tests_name("reference", tests, NULL, NULL);
}
