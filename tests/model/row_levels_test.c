/* SPDX-License-Identifier: Apache-2.0 */
/* The row functions of each level that this CPU runs, against float64: the engine's tests run one level,
   and never the ends of rows that are no whole vectors. */
#include "model/backend/cpu/ops/encoder_ops.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct cpu_encoder_ops *levels[ROW_LEVELS];
static int level_count;

static int find_levels(void **state)
{
    (void)state;
    for (int l = 0; l < ROW_LEVELS; l++)
        if (row_level_runs((enum row_level)l))
            levels[level_count++] = cpu_encoder_ops_at((enum row_level)l);
    return 0;
}

enum { ROWS = 3, SIZES = 8 };
static const uint32_t sizes[SIZES] = {1, 15, 31, 32, 33, 312, 384, 1025};

static uint16_t to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_bf16(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* In [-4, 4), and a bf16. */
static float number(uint64_t k)
{
    uint64_t x = (k + 1) * 0x9e3779b97f4a7c15;
    return from_bf16(to_bf16((float)(x >> 40) / (1 << 21) - 4));
}

/* A batch of rows, and what its norm must be. */
struct batch {
    struct norm n;
    float *x, *f32;
    uint16_t *bf16;
    double *expected;
    bool residual;
};

static void expect_row(const struct batch *b, uint32_t row)
{
    const uint32_t size = b->n.size;
    double mean = 0, squares = 0, *z = b->expected + (size_t)row * size;
    for (uint32_t k = 0; k < size; k++) {
        uint32_t at = row * size + k;
        z[k] = (double)b->x[at] + (b->residual ? (double)b->f32[at] : 0);
        mean += z[k] / size;
    }
    for (uint32_t k = 0; k < size; k++)
        squares += (z[k] - mean) * (z[k] - mean) / size;
    for (uint32_t k = 0; k < size; k++)
        z[k] = (z[k] - mean) / sqrt(squares + (double)b->n.eps) * (double)b->n.gain[k] +
               (double)b->n.shift[k];
}

static struct batch batch_new(uint32_t size, bool residual)
{
    const size_t all = (size_t)ROWS * size;
    struct batch b = {{size, 1e-3f, malloc(size * sizeof(float)), malloc(size * sizeof(float))},
                      malloc(all * sizeof(float)),
                      malloc(all * sizeof(float)),
                      malloc(all * sizeof(uint16_t)),
                      malloc(all * sizeof(double)),
                      residual};
    for (uint32_t k = 0; k < size; k++) {
        b.n.gain[k] = number(k + 7);
        b.n.shift[k] = number(k + 1000);
    }
    for (size_t k = 0; k < all; k++) {
        b.x[k] = number(3 * k);
        b.f32[k] = number(5 * k + 1);
        b.bf16[k] = to_bf16(b.f32[k]);
    }
    for (uint32_t row = 0; row < ROWS; row++)
        expect_row(&b, row);
    return b;
}

static void batch_free(struct batch *b)
{
    free(b->n.gain);
    free(b->n.shift);
    free(b->x);
    free(b->f32);
    free(b->bf16);
    free(b->expected);
}

static void check_norm(const struct cpu_encoder_ops *f, uint32_t size, bool residual, bool bf16)
{
    struct batch b = batch_new(size, residual);
    if (bf16)
        f->norm_bf16(&b.n, ROWS, b.x, residual ? b.bf16 : NULL, b.bf16);
    else
        f->norm_f32(&b.n, ROWS, b.x, residual ? b.f32 : NULL, b.f32);
    for (uint32_t k = 0; k < ROWS * size; k++) {
        double is = (double)(bf16 ? from_bf16(b.bf16[k]) : b.f32[k]);
        double most = (bf16 ? 1. / 256 : 0) * fabs(b.expected[k]) + 1e-4;
        if (!(fabs(is - b.expected[k]) <= most))
            fail_msg("size %u, residual %d, bf16 %d: entry %u is %g, not %g", size, residual,
                     bf16, k, is, b.expected[k]);
    }
    batch_free(&b);
}

static void test_norm(void **state)
{
    (void)state;
    for (int l = 0; l < level_count; l++)
        for (int k = 0; k < SIZES; k++)
            for (int kind = 0; kind < 4; kind++)
                check_norm(levels[l], sizes[k], kind & 1, kind & 2);
}

/* From -16 to 16, and sizes that end anywhere; nothing is written beyond. */
static void must_be_gelu(int level, double x, double y)
{
    double is = 0.5 * x * erfc(-x * M_SQRT1_2), most = fabs(is) / 256 + 1e-5 * fabs(x);
    if (!(fabs(y - is) <= most))
        fail_msg("level %d: gelu(%g) is %g, not %g", level, x, y, is);
}

static void test_gelu(void **state)
{
    enum { COUNT = 4096, BEYOND = 0x7fc1 };
    float x[COUNT];
    uint16_t y[COUNT + 1];
    (void)state;
    for (int k = 0; k < COUNT; k++)
        x[k] = (float)(k - COUNT / 2) / (COUNT / 32);
    for (int l = 0; l < level_count; l++)
        for (int size = COUNT - 40; size <= COUNT; size++) {
            y[size] = BEYOND;
            levels[l]->gelu_bf16((uint64_t)size, x, y);
            assert_int_equal(y[size], BEYOND);
            for (int k = 0; k < size; k++)
                must_be_gelu(l, (double)x[k], (double)from_bf16(y[k]));
        }
}

/* A row of zeros becomes the shift, rounded to nearest even at every level: ties both ways among them. */
static void test_rounding(void **state)
{
    enum { COUNT = 1000 };
    float x[COUNT], gain[COUNT], shift[COUNT];
    uint16_t y[COUNT];
    struct norm n = {COUNT, 1e-3f, gain, shift};
    (void)state;
    for (uint32_t k = 0; k < COUNT; k++) {
        uint32_t bits = (k & 1 ? 0xbf800000 : 0x3f800000) + (k << 14);
        gain[k] = 1;
        memcpy(&shift[k], &bits, sizeof bits);
    }
    for (int l = 0; l < level_count; l++) {
        memset(x, 0, sizeof x);
        levels[l]->norm_bf16(&n, 1, x, NULL, y);
        for (uint32_t k = 0; k < COUNT; k++)
            assert_int_equal(y[k], to_bf16(shift[k]));
    }
}

/* Rows to bf16 and back: every size beside a vector's, the number behind the end untouched. */
static void test_conversions(void **state)
{
    enum { COUNT = 70, BEYOND = 0x1234 };
    const float special[] = {INFINITY, -INFINITY, -0.0f, 0x1.ffp127f};
    float x[COUNT], wide[COUNT + 1];
    uint16_t y[COUNT + 1];
    (void)state;
    for (uint32_t k = 0; k < COUNT; k++)
        x[k] = k < 4 ? special[k] : number(k) * (1 + (float)k * 0x1p-9f);
    for (int l = 0; l < level_count; l++)
        for (uint32_t size = 0; size <= COUNT; size++) {
            y[size] = BEYOND;
            wide[size] = BEYOND;
            levels[l]->round_bf16(size, x, y);
            levels[l]->widen_bf16(size, y, wide);
            for (uint32_t k = 0; k < size; k++) {
                assert_int_equal(y[k], to_bf16(x[k]));
                assert_true(wide[k] == from_bf16(y[k]));
            }
            memcpy(wide, x, size * sizeof *x);
            levels[l]->round_in_place(size, wide);
            for (uint32_t k = 0; k < size; k++)
                assert_true(wide[k] == from_bf16(y[k]));
            assert_true(y[size] == BEYOND && wide[size] == BEYOND);
        }
}

/* Both halves of a head, against float64; what is behind them is not touched. */
static void test_rotation(void **state)
{
    enum { MOST = 37, BEYOND = 0x1234 };
    float x[2 * MOST + 1], own[2 * MOST + 1], cosine[MOST], sine[MOST];
    uint16_t y[2 * MOST + 1];
    (void)state;
    for (uint32_t k = 0; k < 2 * MOST; k++)
        x[k] = from_bf16(to_bf16(number(k)));
    for (uint32_t k = 0; k < MOST; k++) {
        cosine[k] = (float)cos(0.1 * k);
        sine[k] = (float)sin(0.1 * k);
    }
    for (int l = 0; l < level_count; l++)
        for (uint32_t half = 1; half <= MOST; half++) {
            const float sign = half % 2 ? 1 : -1;
            memcpy(own, x, sizeof x);
            for (uint32_t k = 0; k < 2 * half; k++)
                y[k] = to_bf16(x[k]);
            y[2 * half] = BEYOND;
            own[2 * half] = BEYOND;
            levels[l]->rotate_f32(half, cosine, sine, sign, own);
            levels[l]->rotate_bf16(half, cosine, sine, sign, y);
            for (uint32_t k = 0; k < half; k++) {
                const double a = (double)x[k], b = (double)x[half + k], c = (double)cosine[k],
                             s = (double)(sign * sine[k]), first = a * c - b * s,
                             second = b * c + a * s;
                assert_true(fabs((double)own[k] - first) <= 1e-6 * (fabs(a) + fabs(b)));
                assert_true(fabs((double)own[half + k] - second) <= 1e-6 * (fabs(a) + fabs(b)));
                assert_true(fabs((double)from_bf16(y[k]) - first) <=
                            0.005 * (fabs(a) + fabs(b)));
                assert_true(fabs((double)from_bf16(y[half + k]) - second) <=
                            0.005 * (fabs(a) + fabs(b)));
            }
            assert_true(own[2 * half] == BEYOND && y[2 * half] == BEYOND);
        }
}

static void test_sums(void **state)
{
    (void)state;
    for (int l = 0; l < level_count; l++)
        for (int k = 0; k < SIZES; k++) {
            struct batch b = batch_new(sizes[k], false);
            float *sum = malloc(sizes[k] * sizeof *sum), *both = malloc(sizes[k] * sizeof *sum);
            levels[l]->sum_f32(ROWS, sizes[k], b.x, sum);
            levels[l]->sum_bf16(ROWS, sizes[k], b.bf16, both);
            levels[l]->add_f32(sizes[k], sum, both);
            for (uint32_t c = 0; c < sizes[k]; c++) {
                double is = 0;
                for (uint32_t r = 0; r < ROWS; r++)
                    is += (double)b.x[r * sizes[k] + c] + (double)b.f32[r * sizes[k] + c];
                assert_true(fabs((double)both[c] - is) <= 1e-5);
            }
            free(sum);
            free(both);
            batch_free(&b);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm),     cmocka_unit_test(test_gelu),
        cmocka_unit_test(test_rounding), cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_rotation), cmocka_unit_test(test_sums)};
    return cmocka_run_group_tests(tests, find_levels, NULL);
}
