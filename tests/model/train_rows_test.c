/* SPDX-License-Identifier: Apache-2.0 */
/* Training's dropout, LayerNorm with its gradient, and sums, at each level of x86-64 that this CPU runs. */
#include "tests/model/train_levels.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct train_levels levels;

enum { ROWS = 3, SIZES = 6 };
static const uint32_t sizes[SIZES] = {1, 7, 33, 256, 312, 1000};

/* ---- dropout ---- */

static void philox(uint32_t c[4], uint64_t key)
{
    uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t even = 0xD2511F53ull * c[0], odd = 0xCD9E8D57ull * c[2];
        uint32_t next[4] = {(uint32_t)(odd >> 32) ^ c[1] ^ key0, (uint32_t)odd,
                            (uint32_t)(even >> 32) ^ c[3] ^ key1, (uint32_t)even};
        memcpy(c, next, sizeof next);
        key0 += 0x9E3779B9;
        key1 += 0xBB67AE85;
    }
}

static uint32_t draw(const struct row_dropout *d, struct row_place row, uint32_t column)
{
    uint32_t c[4] = {column / 8, row.position, row.sample, d->site};
    philox(c, d->seed);
    return column % 8 < 4 ? c[column % 4] & 0xffff : c[column % 4] >> 16;
}

/* The known answers of Random123 for Philox4x32-10. */
static void test_philox(void **state)
{
    (void)state;
    uint32_t zeros[4] = {0}, ones[4] = {~0u, ~0u, ~0u, ~0u};
    philox(zeros, 0);
    philox(ones, ~0ull);
    assert_memory_equal(zeros, ((uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}),
                        16);
    assert_memory_equal(ones, ((uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}),
                        16);
}

/* The first 8 draws of seed 0: an entry is kept by a threshold of its draw, dropped by the next. */
static void test_draws(void **state)
{
    static const uint16_t draws[8] = {0xe8d5, 0xc58d, 0xac4c, 0xdbd8,
                                      0x6627, 0xe169, 0xbc57, 0x9b00};
    const struct row_place place = {0, 0};
    float x[8] = {1, 1, 1, 1, 1, 1, 1, 1}, y[8];
    (void)state;
    for (int l = 0; l < levels.count; l++)
        for (int k = 0; k < 8; k++)
            for (uint32_t more = 0; more < 2; more++) {
                struct row_dropout d = {0, 0, draws[k] + more, 2};
                levels.list[l]->drop_f32(&d, &place, 1, 8, x, y);
                assert_true(y[k] == (more ? 0 : 2));
            }
}

static void check_drop(const struct cpu_train_ops *f, uint32_t size, uint32_t below)
{
    const struct row_dropout d = {0x123456789abcdef0, 77, below, 65536.0f / (65537 - below)};
    const struct row_place place[ROWS] = {{5, 0}, {5, 1}, {4000000000, 511}};
    float *x = train_numbers(ROWS * size, 1), *y = malloc((ROWS * size + 1) * sizeof *y);
    uint16_t *half = malloc((ROWS * size + 1) * sizeof *half);
    y[ROWS * size] = 7;
    half[ROWS * size] = 7;
    f->drop_f32(&d, place, ROWS, size, x, y);
    f->drop_bf16(&d, place, ROWS, size, x, half);
    for (uint32_t k = 0; k < ROWS * size; k++) {
        bool kept = draw(&d, place[k / size], k % size) >= below;
        float is = !kept ? 0 : below ? x[k] * d.keep_scale : x[k];
        assert_true(y[k] == is);
        assert_int_equal(half[k], to_bf16(is));
    }
    assert_true(y[ROWS * size] == 7 && half[ROWS * size] == 7);
    f->drop_f32(&d, place, ROWS, size, x, x);
    assert_memory_equal(x, y, ROWS * size * sizeof *x);
    free(x);
    free(y);
    free(half);
}

static void test_drop(void **state)
{
    static const uint32_t below[] = {0, 1, 6554, 32768, 65535, 65536};
    (void)state;
    for (int l = 0; l < levels.count; l++)
        for (int k = 0; k < SIZES; k++)
            for (int b = 0; b < 6; b++)
                check_drop(levels.list[l], sizes[k], below[b]);
}

/* ---- LayerNorm ---- */

/* Normalises one row in float64 into z. Returns the sum of dy y, and 1 / the deviation. */
static double norm(const struct norm *n, const double *x, const float *dy, double *z,
                   double *ret_inverse)
{
    double mean = 0, squares = 0, ret = 0;
    for (uint32_t k = 0; k < n->size; k++)
        mean += x[k] / n->size;
    for (uint32_t k = 0; k < n->size; k++)
        squares += (x[k] - mean) * (x[k] - mean) / n->size;
    *ret_inverse = 1 / sqrt(squares + (double)n->eps);
    for (uint32_t k = 0; k < n->size; k++) {
        z[k] = (x[k] - mean) * *ret_inverse;
        ret += (double)dy[k] * (z[k] * (double)n->gain[k] + (double)n->shift[k]);
    }
    return ret;
}

struct rows {
    struct norm n;
    float *x, *residual, *dy, *normalised, *y, *dx, *gain_sum, *shift_sum, inverse[ROWS];
    uint16_t *half_residual, *half_normalised, *half_y;
    double *sum; /* x + residual, before x is overwritten */
};

static struct rows rows_new(uint32_t size, bool residual)
{
    const uint32_t all = ROWS * size;
    struct rows r = {{size, 1e-3f, train_numbers(size, 2), train_numbers(size, 3)},
                     train_numbers(all, 4),
                     train_numbers(all, 5),
                     train_numbers(all, 6),
                     train_numbers(all, 7),
                     train_numbers(all, 8),
                     train_numbers(all, 9),
                     train_numbers(size, 10),
                     train_numbers(size, 11)};
    for (uint32_t k = 0; k < all; k++)
        r.residual[k] = from_bf16(to_bf16(r.residual[k]));
    r.half_residual = train_halves(r.residual, all);
    r.half_normalised = train_halves(r.residual, all);
    r.half_y = train_halves(r.residual, all);
    r.sum = malloc(all * sizeof *r.sum);
    for (uint32_t k = 0; k < all; k++)
        r.sum[k] = (double)r.x[k] + (residual ? (double)r.residual[k] : 0);
    return r;
}

static void rows_free(struct rows *r)
{
    void *list[] = {r->n.gain,
                    r->n.shift,
                    r->x,
                    r->residual,
                    r->dy,
                    r->normalised,
                    r->y,
                    r->dx,
                    r->gain_sum,
                    r->shift_sum,
                    r->half_residual,
                    r->half_normalised,
                    r->half_y,
                    r->sum};
    for (size_t k = 0; k < sizeof list / sizeof *list; k++)
        free(list[k]);
}

static void expect(const char *what, double found, double is, double most)
{
    if (!(fabs(found - is) <= most))
        fail_msg("%s: %g, not %g", what, found, is);
}

static void expect_forward(const struct rows *r, bool bf16)
{
    const uint32_t size = r->n.size;
    double *z = malloc(size * sizeof *z), inverse;
    for (uint32_t row = 0; row < ROWS; row++) {
        norm(&r->n, r->sum + (size_t)row * size, r->dy, z, &inverse);
        expect("inverse", (double)r->inverse[row], inverse, 1e-6 * inverse);
        for (uint32_t k = 0; k < size; k++) {
            const uint32_t at = row * size + k;
            double y = z[k] * (double)r->n.gain[k] + (double)r->n.shift[k];
            double of = bf16 ? 1. / 256 : 0;
            expect("normalised",
                   (double)(bf16 ? from_bf16(r->half_normalised[at]) : r->normalised[at]), z[k],
                   of * fabs(z[k]) + 3e-6);
            expect("y", (double)(bf16 ? from_bf16(r->half_y[at]) : r->y[at]), y,
                   of * fabs(y) + 1e-5);
        }
    }
    free(z);
}

/* Central differences of the sum of dy y, at up to 20 columns of a row. */
static void expect_dx(const struct rows *r, uint32_t row, bool bf16)
{
    const uint32_t size = r->n.size;
    const double h = 1e-5;
    double *x = r->sum + (size_t)row * size, *z = malloc(size * sizeof *z), inverse;
    for (uint32_t k = 0; k < size; k += size / 20 + 1) {
        const float *dy = r->dy + (size_t)row * size;
        double old = x[k];
        x[k] = old + h;
        double above = norm(&r->n, x, dy, z, &inverse);
        x[k] = old - h;
        double below = norm(&r->n, x, dy, z, &inverse);
        x[k] = old;
        expect("dx", (double)r->dx[row * size + k], (above - below) / (2 * h),
               (bf16 ? 0.1 : 1e-5) * (1 + inverse));
    }
    free(z);
}

/* Expects sums on top of their initial values, train_numbers 10 and 11. */
static void expect_sums(const struct rows *r, bool bf16)
{
    const uint32_t size = r->n.size;
    double *z = malloc(ROWS * size * sizeof *z), inverse;
    for (uint32_t row = 0; row < ROWS; row++)
        norm(&r->n, r->sum + (size_t)row * size, r->dy, z + (size_t)row * size, &inverse);
    for (uint32_t k = 0; k < size; k++) {
        double gain = (double)train_number(k + 10 * 1000003),
               shift = (double)train_number(k + 11 * 1000003);
        for (uint32_t at = k; at < ROWS * size; at += size) {
            gain += (double)r->dy[at] * z[at];
            shift += (double)r->dy[at];
        }
        expect("gain", (double)r->gain_sum[k], gain, bf16 ? 0.1 : 4e-5);
        expect("shift", (double)r->shift_sum[k], shift, 5e-6);
    }
    free(z);
}

static void check_norm(const struct cpu_train_ops *f, uint32_t size, bool residual, bool bf16)
{
    struct rows r = rows_new(size, residual);
    if (bf16)
        f->norm_bf16(&r.n, ROWS, r.x, residual ? r.half_residual : NULL, r.half_normalised,
                     r.inverse, r.half_y);
    else
        f->norm_f32(&r.n, ROWS, r.x, residual ? r.residual : NULL, r.normalised, r.inverse,
                    r.y);
    expect_forward(&r, bf16);
    if (bf16)
        f->norm_back_bf16(&r.n, ROWS, r.half_normalised, r.inverse, r.dy, r.dx, r.gain_sum,
                          r.shift_sum);
    else
        f->norm_back_f32(&r.n, ROWS, r.normalised, r.inverse, r.dy, r.dx, r.gain_sum,
                         r.shift_sum);
    for (uint32_t row = 0; row < ROWS; row++)
        expect_dx(&r, row, bf16);
    expect_sums(&r, bf16);
    rows_free(&r);
}

/* The gradient of bf16 is that of f32 for the same normalised rows. */
static void check_types(const struct cpu_train_ops *f, uint32_t size)
{
    struct rows a = rows_new(size, false), b = rows_new(size, false);
    float inverse[ROWS] = {1, 0.5f, 3};
    widen_row(ROWS * size, a.half_normalised, a.normalised);
    f->norm_back_f32(&a.n, ROWS, a.normalised, inverse, a.dy, a.dx, a.gain_sum, a.shift_sum);
    f->norm_back_bf16(&b.n, ROWS, b.half_normalised, inverse, b.dy, b.dy, b.gain_sum,
                      b.shift_sum);
    for (uint32_t k = 0; k < ROWS * size; k++)
        expect("dx", (double)b.dy[k], (double)a.dx[k], 3e-4);
    for (uint32_t k = 0; k < size; k++) {
        expect("gain", (double)b.gain_sum[k], (double)a.gain_sum[k], 1e-5);
        expect("shift", (double)b.shift_sum[k], (double)a.shift_sum[k], 0);
    }
    rows_free(&a);
    rows_free(&b);
}

static void test_types(void **state)
{
    (void)state;
    for (int l = 0; l < levels.count; l++)
        for (int k = 0; k < SIZES; k++)
            check_types(levels.list[l], sizes[k]);
}

static void test_norm(void **state)
{
    (void)state;
    for (int l = 0; l < levels.count; l++)
        for (int k = 0; k < SIZES; k++)
            for (int kind = 0; kind < 4; kind++)
                check_norm(levels.list[l], sizes[k], kind & 1, kind & 2);
}

/* ---- sums ---- */

/* Row by row, in order: the same bits as here. */
static void check_sums(const struct cpu_train_ops *f, uint32_t size)
{
    float *x = train_numbers(ROWS * size, 12), *sum = train_numbers(size, 13),
          *both = train_numbers(size, 13);
    uint16_t *half = train_halves(x, ROWS * size);
    f->columns_f32(ROWS, size, x, both);
    f->columns_bf16(ROWS, size, half, both);
    f->add_f32(size, x, both);
    for (uint32_t k = 0; k < size; k++) {
        for (uint32_t at = k; at < ROWS * size; at += size)
            sum[k] += x[at];
        for (uint32_t at = k; at < ROWS * size; at += size)
            sum[k] += from_bf16(half[at]);
        sum[k] += x[k];
    }
    assert_memory_equal(sum, both, size * sizeof *sum);
    free(x);
    free(sum);
    free(both);
    free(half);
}

static void test_sums(void **state)
{
    (void)state;
    for (int l = 0; l < levels.count; l++)
        for (int k = 0; k < SIZES; k++)
            check_sums(levels.list[l], sizes[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox), cmocka_unit_test(test_draws),
        cmocka_unit_test(test_drop),   cmocka_unit_test(test_norm),
        cmocka_unit_test(test_types),  cmocka_unit_test(test_sums)};
    levels = train_levels_find();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
