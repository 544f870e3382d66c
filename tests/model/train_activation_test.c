/* SPDX-License-Identifier: Apache-2.0 */
/* Training's activations with their derivatives, and the loss of a row of logits, at each level of x86-64 that this
   CPU runs, against float64. */
#include "tests/model/train_levels.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct train_levels levels;

enum { SIZES = 6, LONGEST = 5003 };
static const uint32_t sizes[SIZES] = {1, 7, 33, 256, 1000, LONGEST};

/* ---- activations ---- */

static double activation(enum after a, double x)
{
    double u = sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    switch (a) {
    case AFTER_GELU:
        return 0.5 * x * erfc(-x * M_SQRT1_2);
    case AFTER_GELU_TANH:
        return x / (1 + exp(-2 * u));
    case AFTER_RELU:
        return x < 0 ? 0 : x;
    case AFTER_SILU:
        return x / (1 + exp(-x));
    case AFTER_TANH:
        return tanh(x);
    default:
        return x;
    }
}

static double derivative(enum after a, double x)
{
    const double h = 1e-5 * (1 + fabs(x));
    if (a == AFTER_RELU) /* no difference shows it near 0 */
        return x > 0;
    return (activation(a, x + h) - activation(a, x - h)) / (2 * h);
}

/* Mostly within +-16, some far out. */
static float point(uint32_t k)
{
    return k % 50 == 49 ? train_number(k) * 1e4f : train_number(k) * (1 + (float)(k % 4));
}

struct activated {
    float x[LONGEST + 1], dy[LONGEST + 1], y[LONGEST + 1], dx[LONGEST + 1];
    uint16_t kept[LONGEST + 1], half_y[LONGEST + 1], again[LONGEST + 1], half_dx[LONGEST + 1];
};

static void activate(const struct cpu_train_ops *f, enum after a, uint32_t size,
                     struct activated *v)
{
    for (uint32_t k = 0; k <= size; k++) {
        v->x[k] = point(k);
        v->dy[k] = 1 + train_number(k + 77) / 8;
        v->y[k] = v->dx[k] = 7;
        v->kept[k] = v->half_y[k] = v->again[k] = v->half_dx[k] = 7;
    }
    f->activate_f32(a, size, v->x, v->y);
    f->activate_back_f32(a, size, v->x, v->dy, v->dx);
    f->activate_bf16(a, size, v->x, v->kept, v->half_y);
    f->reactivate_bf16(a, size, v->kept, v->again);
    f->activate_back_bf16(a, size, v->kept, v->dy, v->half_dx);
    assert_true(v->y[size] == 7 && v->dx[size] == 7);
    assert_true(v->kept[size] == 7 && v->half_y[size] == 7 && v->again[size] == 7 &&
                v->half_dx[size] == 7);
}

static void check_activation(const struct cpu_train_ops *f, enum after a, uint32_t size)
{
    static struct activated v;
    float kept[LONGEST], again[LONGEST], dx[LONGEST];
    activate(f, a, size, &v);
    for (uint32_t k = 0; k < size; k++)
        kept[k] = from_bf16(to_bf16(v.x[k]));
    f->activate_f32(a, size, kept, again);
    f->activate_back_f32(a, size, kept, v.dy, dx);
    for (uint32_t k = 0; k < size; k++) {
        double x = (double)v.x[k], dy = (double)v.dy[k], largest = fmax(fabs(x), 1);
        double y_error = fabs((double)v.y[k] - activation(a, x)),
               dx_error = fabs((double)v.dx[k] - dy * derivative(a, x));
        if (!(y_error <= 2e-7 * largest))
            fail_msg("activation %d of %.9g is off by %g", a, x, y_error);
        if (!(dx_error <= 6e-7 * largest))
            fail_msg("derivative %d of %.9g is off by %g", a, x, dx_error);
        assert_int_equal(v.kept[k], to_bf16(v.x[k]));
        assert_true(train_neighbours(v.half_y[k], to_bf16(v.y[k])));
        assert_true(train_neighbours(v.again[k], to_bf16(again[k])));
        assert_true(train_neighbours(v.half_dx[k], to_bf16(dx[k])));
    }
}

static void test_activations(void **state)
{
    (void)state;
    for (int l = 0; l < levels.count; l++)
        for (int k = 0; k < SIZES; k++)
            for (int a = AFTER_NONE; a <= AFTER_TANH; a++)
                check_activation(levels.list[l], (enum after)a, sizes[k]);
}

/* A GPU's NaN: its mantissa is all ones, x86's has one bit. */
static float full_nan(void)
{
    const uint32_t bits = 0x7fffffff;
    float ret;
    memcpy(&ret, &bits, sizeof ret);
    return ret;
}

/* 0 and the ends of f32; a NaN is not lost, in bf16 neither. */
static void test_ends(void **state)
{
    enum { N = 8 };
    const float x[N] = {0, 1e-30f, -1e-30f, 3e38f, -3e38f, NAN, -NAN, full_nan()},
                one[N] = {1, 1, 1, 1, 1, 1, 1, 1};
    float y[N], dx[N];
    uint16_t kept[N], half[N];
    (void)state;
    for (int l = 0; l < levels.count; l++)
        for (int a = AFTER_NONE; a <= AFTER_TANH; a++) {
            levels.list[l]->activate_f32((enum after)a, N, x, y);
            levels.list[l]->activate_back_f32((enum after)a, N, x, one, dx);
            levels.list[l]->activate_bf16((enum after)a, N, x, kept, half);
            assert_true(y[0] == 0);
            for (int k = 0; k < N; k++) {
                assert_int_equal(isnan(y[k]), isnan(x[k]));
                assert_int_equal(isnan(from_bf16(half[k])), isnan(x[k]));
                assert_true(isnan(x[k]) || isfinite(dx[k]));
            }
        }
}

/* ---- loss ---- */

static void check_loss(const struct cpu_train_ops *f, uint32_t size, uint32_t label)
{
    const float weight = 0.125f;
    float *logits = train_numbers(size, size + label), *d = malloc(size * sizeof *d);
    uint16_t *half = malloc(size * sizeof *half);
    double sum = 0, is;
    bool first = true;
    int right, half_right;
    for (uint32_t k = 0; k < size; k++) {
        logits[k] *= 3;
        sum += exp((double)logits[k]);
    }
    for (uint32_t k = 0; k < size; k++)
        first = first && (logits[k] < logits[label] || k == label);
    is = log(sum) - (double)logits[label];
    double loss = f->cross_entropy_f32(size, logits, label, weight, d, &right);
    assert_true(loss == f->cross_entropy_f32(size, logits, label, weight, NULL, &right));
    assert_true(loss == f->cross_entropy_bf16(size, logits, label, weight, half, &half_right));
    assert_true(right == first && half_right == first);
    assert_true(fabs(loss - is) <= 3e-7 * fmax(is, 1));
    for (uint32_t k = 0; k < size; k++) {
        double p = exp((double)logits[k]) / sum - (k == label);
        assert_true(fabs((double)d[k] - (double)weight * p) <= 1e-6 * 0.125 * fabs(p) + 1e-8);
        assert_true(train_neighbours(half[k], to_bf16(d[k])));
    }
    f->cross_entropy_f32(size, logits, label, weight, logits, &right);
    assert_memory_equal(logits, d, size * sizeof *d);
    free(logits);
    free(d);
    free(half);
}

static void test_loss(void **state)
{
    (void)state;
    for (int l = 0; l < levels.count; l++)
        for (int k = 0; k < SIZES; k++)
            for (uint32_t label = 0; label < sizes[k]; label += sizes[k] / 3 + 1)
                check_loss(levels.list[l], sizes[k], label);
}

/* Among equal logits the first is right. -infinity has probability 0; NaN, +infinity and nothing else than -infinity
   make all NaN. */
static void check_special(const struct cpu_train_ops *f)
{
    enum { N = 200 };
    float x[N] = {0}, d[N];
    int right;
    f->cross_entropy_f32(N, x, 0, 1, d, &right);
    assert_true(right);
    f->cross_entropy_f32(N, x, 150, 1, d, &right);
    assert_false(right);
    x[3] = x[150] = -INFINITY;
    assert_true(fabs(f->cross_entropy_f32(N, x, 0, 1, d, &right) - log(N - 2)) < 1e-6);
    assert_true(d[3] == 0 && d[150] == 0 && isfinite(d[0]) && right);
    assert_true(isinf(f->cross_entropy_f32(N, x, 3, 1, d, &right)) && d[3] == -1 && !right);
    const float special[] = {NAN, full_nan(), -full_nan(), INFINITY};
    enum { KINDS = sizeof special / sizeof *special };
    for (int kind = 0; kind <= KINDS; kind++) {
        for (int k = 0; k < N; k++)
            x[k] = kind == KINDS ? -INFINITY : 1;
        if (kind < KINDS)
            x[77] = special[kind];
        assert_true(isnan(f->cross_entropy_f32(N, x, 5, 1, d, &right)) && !right);
        for (int k = 0; k < N; k++)
            assert_true(isnan(d[k]));
    }
}

static void test_special(void **state)
{
    (void)state;
    for (int l = 0; l < levels.count; l++)
        check_special(levels.list[l]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_activations),
                                       cmocka_unit_test(test_ends), cmocka_unit_test(test_loss),
                                       cmocka_unit_test(test_special)};
    levels = train_levels_find();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
