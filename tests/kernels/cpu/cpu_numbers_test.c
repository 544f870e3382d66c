/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of the CPU templates against libm in double, at the vector width that the build
   gives (one executable a width): 2^x over its range and at its ends, ln x, rounding to bf16 and f16, sums
   and maxima across lanes, and the dropout draw against the independent one of tools/reference. */
#ifndef VECTOR_BYTES
#define VECTOR_BYTES 16
#endif
#include "templates/abi.h"
#include "tests/support/test.h"
/* in this order */
#include "templates/cpu/vector.h"

#include "templates/cpu/numbers.h"
/* and then */
#include "templates/cpu/draw.h"
#include "templates/cpu/half.h"
#include "tools/reference/check.h"
#include <math.h>
#include <string.h>

static void test_exp2(void **state)
{
    (void)state;
    double worst = 0;
    for (int k = 0; k < 4000000; k++) {
        float x = -125.0f + (float)k * (253.0f / 4000000);
        double error = fabs((double)exp2_one(x) / exp2((double)x) - 1);
        worst = error > worst ? error : worst;
    }
    assert_true(worst < 3e-7);
    assert_true(exp2_one(-INFINITY) == 0 && exp2_one(-126.0f) == 0 && exp2_one(-1e30f) == 0);
    static const u32 nan[] = {0x7fc00000, 0xffc00000, 0x7fffffff,
                              0xffffffff, 0x7f800001, 0xff8001ff};
    for (u32 k = 0; k < sizeof nan / sizeof *nan; k++)
        assert_true(isnan(exp2_one(float_of_bits(nan[k]))));
    assert_true(fabsf(exp2_one(0) - 1) < 2e-7f);
}

static void test_log(void **state)
{
    (void)state;
    for (double x = 1e-37; x < 1e38; x *= 1.001) {
        float f = (float)x;
        double exact = log((double)f), got = (double)natural_log(splat(f))[LANES - 1];
        assert_true(fabs(got - exact) <= 2e-7 + 2e-7 * fabs(exact));
    }
    assert_true(isnan(natural_log(splat(NAN))[0]));
}

static void test_bf16(void **state)
{
    (void)state;
    for (u32 k = 0; k < 0x10000; k++) {
        float x = float_of_bf16((u16)k);
        if (isnan(x))
            assert_true(isnan(float_of_bf16(bf16_of_float(x))));
        else
            assert_int_equal(bf16_of_float(x), k);
    }
    for (u32 k = 0; k < 2000000; k++) {
        float x = float_of_bits(k * 2147u);
        if (!isnan(x))
            assert_true(float_of_bf16(bf16_of_float(x)) == dtype_round(ABI_BF16, x));
    }
    assert_true(isnan(float_of_bf16(bf16_of_float(float_of_bits(0x7f800001)))));
}

/* Every f16, by both texts; then floats of all sizes, and the ties between neighbours. */
static void test_f16(void **state)
{
    (void)state;
    u16 half[HALF_GROUP], back[HALF_GROUP];
    float x[HALF_GROUP];
    for (u32 k = 0; k < 0x10000; k += HALF_GROUP) {
        for (u32 i = 0; i < HALF_GROUP; i++)
            half[i] = (u16)(k + i);
        floats_of_f16(half, x);
        f16_of_floats(x, back);
        for (u32 i = 0; i < HALF_GROUP; i++) {
            double exact = dtype_decode(ABI_F16, &half[i]);
            float one = float_of_f16(half[i]);
            if (isnan(exact)) {
                assert_true(isnan(x[i]) && isnan(one) &&
                            isnan(dtype_decode(ABI_F16, &back[i])));
                assert_true(isnan(float_of_f16(f16_of_float(one))));
            } else {
                assert_true(bits_of_float(x[i]) == bits_of_float((float)exact));
                assert_true(bits_of_float(one) == bits_of_float((float)exact));
                assert_true(back[i] == half[i] && f16_of_float(one) == half[i]);
            }
        }
    }
}

static void check_f16(float from)
{
    float x[HALF_GROUP];
    u16 half[HALF_GROUP], exact;
    for (u32 i = 0; i < HALF_GROUP; i++)
        x[i] = i & 1 ? -from : from;
    f16_of_floats(x, half);
    dtype_encode(ABI_F16, (double)from, &exact);
    assert_int_equal(half[0], exact);
    assert_int_equal(half[HALF_GROUP - 1], exact ^ 0x8000);
    assert_int_equal(f16_of_float(from), exact);
}

static void test_f16_rounding(void **state)
{
    (void)state;
    for (u32 k = 0; k < 1000000; k++)
        if (!isnan(float_of_bits(k * 2147u)))
            check_f16(float_of_bits(k * 2147u));
    for (u32 k = 0; k < 0x7c00; k++) {
        float low = float_of_f16((u16)k),
              high = k + 1 < 0x7c00 ? float_of_f16((u16)(k + 1)) : 65536;
        float tie = low + (high - low) / 2;
        check_f16(tie);
        check_f16(float_of_bits(bits_of_float(tie) - 1));
        check_f16(float_of_bits(bits_of_float(tie) + 1));
    }
}

static void must_reduce(const float x[LANES], float sum, float most)
{
    float exact = 0, largest = -INFINITY;
    for (u32 k = 0; k < LANES; k++) {
        exact += x[k];
        largest = x[k] > largest ? x[k] : largest;
    }
    assert_true(sum == exact && most == largest);
}

static void test_lanes(void **state)
{
    (void)state;
    float x[4][LANES];
    for (u32 at = 0; at < 4 * LANES; at++) {
        for (u32 k = 0; k < 4 * LANES; k++)
            x[k / LANES][k % LANES] = (float)(k * 37 % 101) - 50 + (k == at ? 1000 : 0);
        quad sum = sum4(load(x[0]), load(x[1]), load(x[2]), load(x[3]));
        quad most = max4(load(x[0]), load(x[1]), load(x[2]), load(x[3]));
        for (u32 r = 0; r < 4; r++)
            must_reduce(x[r], sum[r], most[r]);
        for (u32 k = 0; k < LANES; k++)
            assert_int_equal(mask_of_bits(at)[k], at >> k & 1 ? -1 : 0);
    }
}

/* The vectors of templates/README.md, then many more. */
static void test_draws(void **state)
{
    (void)state;
    assert_int_equal(dropout_draw(0, 0, 0, 0, 0), 59605);
    assert_int_equal(dropout_draw(42, 0, 0, 9, 2), 8707);
    assert_int_equal(dropout_draw(42, 0, 0, 17, 40), 23901);
    assert_int_equal(dropout_draw(0x123456789abcdef0, 2, 3, 100, 101), 860);
    const u64 seed[] = {0, 1, 0x123456789abcdef0};
    for (u32 s = 0; s < 3; s++)
        for (u32 k = 0; k < 5000; k++) {
            u32 i = k * 31 % 257, j = k * 17 % 509, b = k % 3, h = k % 12;
            assert_int_equal(dropout_draw(seed[s], b, h, i, j),
                             reference_draw(seed[s], b, h, i, j));
        }
}

/* Tiles in both orientations, wherever a multiple of 16 puts them, and single entries. */
/* 1 if the reference keeps the entry, 0 if not. Also checks the vector draws against it. */
static u32 entry_kept(const struct draw *of, u32 i, u32 j)
{
    u32 keep = reference_draw(of->seed, of->sample, of->h, i, j) >= of->keep_below;
    if (i >= CALLS)
        assert_int_equal(
            draw_entries(of, wide_count(i) - (CALLS - 1), wide_splat(j))[CALLS - 1] & 1, keep);
    return keep;
}

static void test_vector_draws(void **state)
{
    (void)state;
    const struct draw of = {0x123456789abcdef0, 70000, 5, 6554};
    for (u32 i0 = 0; i0 < 80; i0 += 16)
        for (u32 j0 = 0; j0 < 80; j0 += 16) {
            u32 query[32], key[32];
            draw_queries(&of, i0, j0, query);
            draw_keys(&of, j0, i0, key);
            for (u32 i = 0; i < 32; i++)
                for (u32 j = 0; j < 32; j++) {
                    u32 keep = entry_kept(&of, i0 + i, j0 + j);
                    assert_int_equal(draw_query(&of, i0 + i, j0) >> j & 1, keep);
                    assert_int_equal(draw_key(&of, j0 + j, i0) >> i & 1, keep);
                    assert_int_equal(query[i] >> j & 1, keep);
                    assert_int_equal(key[j] >> i & 1, keep);
                }
        }
}

/* 16 rows from 32 on along diagonals and columns, in both orientations. */
static void test_lines(void **state)
{
    (void)state;
    const struct draw of = {0x123456789abcdef0, 70000, 5, 30000};
    const struct draw_step row = {32, 1};
    for (i32 first = 0; first < 80; first++)
        for (i32 by = 0; by < 2; by++) {
            const struct draw_step column = {first, by};
            const int shared = !by || first % 16 == 0;
            const u32 bits = draw_line(&of, row, column, 0),
                      other = draw_line(&of, column, row, 0);
            for (u32 k = 0; k < 16; k++) {
                const u32 at = (u32)(first + by * (i32)k);
                assert_int_equal(bits >> k & 1, entry_kept(&of, 32 + k, at));
                assert_int_equal(other >> k & 1, entry_kept(&of, at, 32 + k));
            }
            if (shared) {
                assert_int_equal(draw_line(&of, row, column, 1), bits);
                assert_int_equal(draw_line(&of, column, row, 1), other);
            }
        }
}

int main(void)
{
#if VECTOR_BYTES == 64
    bool runs = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
#elif VECTOR_BYTES == 32
    bool runs =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); /* and so F16C */
#else
    bool runs = true;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp2),         cmocka_unit_test(test_log),
        cmocka_unit_test(test_bf16),         cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_draws),        cmocka_unit_test(test_f16),
        cmocka_unit_test(test_f16_rounding), cmocka_unit_test(test_vector_draws),
        cmocka_unit_test(test_lines),
    };
    if (!runs)
        return 77; /* meson: skipped */
    return cmocka_run_group_tests_name("cpu numbers", tests, NULL, NULL);
}
