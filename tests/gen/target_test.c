/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of targets and machines, and what of a kernel's features is refused by name. */
#include "gen/cost/machine.h"
#include "gen/family/family.h"
#include "gen/target.h"
#include "tests/support/locale/comma_locale.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_tables(void **state)
{
    (void)state;
    struct error e = {0};
    for (const struct target *t = targets; t->name; t++) {
        assert_ptr_equal(target_find(t->name, &e), t);
        const struct machine *m = machine_find(t->machine, &e);
        assert_non_null(m);
        assert_int_equal(m->kind, t->kind);
        assert_int_equal(t->block_rows % 32, 0);
        assert_in_range(t->block_rows, 32, ABI_MAX_BLOCK_ROWS);
        assert_int_equal(t->kind == TARGET_CPU, t->vector_bytes > 0);
        assert_int_equal(t->kind == TARGET_CUDA, t->threads > 0);
    }
    for (const struct machine *m = machines; m->name; m++) {
        assert_true(m->flops > 0 && m->exps > 0 && m->bytes > 0 && m->workers > 0);
        const double *rate = m->rate[PASS_FORWARD];
        assert_true(rate[RATE_TILE_FLOP] > 0 && rate[RATE_ROW_FLOP] > 0);
        assert_int_equal(rate[RATE_LINE_FLOP] > 0, rate[RATE_LINE_ENTRY] > 0); /* 0: no lines */
        /* No faster than the peak, but for what a fit makes of two figures that go together. */
        assert_true(rate[RATE_TILE_FLOP] * m->flops >= (m->kind == TARGET_CPU ? 0.9 : 1e-3));
        for (int pass = 0; pass < PASSES; pass++)
            for (int k = 0; k < RATES; k++)
                assert_true(m->rate[pass][k] >= 0 && m->rate[pass][k] < 1e-3);
    }
}

static void test_unknown(void **state)
{
    (void)state;
    struct error e = {0};
    assert_null(target_find("x86-64-v9", &e));
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_non_null(strstr(e.text, "x86-64-v9"));
    assert_non_null(strstr(e.text, "sm_90a"));
    assert_null(strchr(e.text, '\n'));
    assert_null(machine_find("cray", &e));
    assert_non_null(strstr(e.text, "x86-avx512"));
}

static void test_dtype(void **state)
{
    (void)state;
    struct error e = {0};
    enum abi_dtype d;
    assert_int_equal(dtype_parse("bf16", &d, &e), 0);
    assert_int_equal(d, ABI_BF16);
    assert_int_equal(dtype_bytes(d), 2);
    assert_string_equal(dtype_name(ABI_F32), "f32");
    assert_int_not_equal(dtype_parse("F32", &d, &e), 0);
    assert_int_equal(d, ABI_BF16); /* untouched */
    assert_non_null(strstr(e.text, "F32"));
}

static void test_transform(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "sparsegen",
                                        "sparsegen=",
                                        "sparsegen=x",
                                        "sparsegen=1",
                                        "sparsegen=2",
                                        "sparsegen=nan",
                                        "sparsegen=-inf",
                                        "softmax=1",
                                        "sparsegen=0.5 ",
                                        "sparsegen=1e60",
                                        "sparsegen=0.99999999999"};
    struct kernel_request f = {.head_dim = 64};
    struct error e = {0};
    assert_int_equal(transform_parse("sparsegen=-4.5", &f, &e), 0);
    assert_int_equal(f.transform, ABI_SPARSEGEN);
    assert_true(f.lambda == -4.5F);
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        assert_int_not_equal(transform_parse(wrong[k], &f, &e), 0);
        assert_int_equal(e.kind, ERROR_INPUT);
        assert_true(f.lambda == -4.5F);
    }
    assert_int_equal(transform_parse("softmax", &f, &e), 0);
    assert_int_equal(f.transform, ABI_SOFTMAX);
}

static void test_features(void **state)
{
    (void)state;
    static const uint32_t wrong[] = {0, 8, 12, 17, 60, 264, 4294967288u};
    struct error e = {0};
    for (const struct target *t = targets; t->name; t++) {
        struct kernel_request f = {.head_dim = 64};
        for (f.head_dim = 16; f.head_dim <= 256; f.head_dim += 8)
            assert_int_equal(kernel_request_check(&f, t, &e), 0);
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            f.head_dim = wrong[k];
            assert_int_not_equal(kernel_request_check(&f, t, &e), 0);
            assert_int_equal(e.kind, ERROR_INPUT);
            assert_non_null(strstr(e.text, "multiple of 8"));
        }
        f = (struct kernel_request){.head_dim = 64, .dtype = ABI_F16};
        assert_int_equal(kernel_request_check(&f, t, &e), 0);
        f = (struct kernel_request){.head_dim = 64, .bias = ABI_BIAS_SCALE};
        assert_int_equal(kernel_request_check(&f, t, &e), 0);
        f = (struct kernel_request){.head_dim = 64, .transform = ABI_SPARSEGEN, .lambda = 1};
        assert_int_not_equal(kernel_request_check(&f, t, &e), 0);
        f.lambda = NAN;
        assert_int_not_equal(kernel_request_check(&f, t, &e), 0);
    }
}

/* A matrix unit takes bf16; for all else its target plans as the one below it. */
static bool is_matrix(const struct target *t, const struct kernel_request *r)
{
    return family_is_matrix(t, &(struct kernel_config){.request = *r});
}

static void test_matrix(void **state)
{
    (void)state;
    struct error e = {0};
    const struct target *amx = target_find("x86-64-amx", &e),
                        *v4 = target_find("x86-64-v4", &e);
    const struct kernel_request half = {.dtype = ABI_BF16, .head_dim = 64},
                                whole = {.head_dim = 64},
                                sparse = {.dtype = ABI_BF16,
                                          .transform = ABI_SPARSEGEN,
                                          .lambda = -4,
                                          .head_dim = 64},
                                bias = {
                                    .dtype = ABI_BF16, .bias = ABI_BIAS_ADD, .head_dim = 64};
    enum abi_bias kind = ABI_BIAS_NONE;
    assert_int_equal(bias_parse("scale", &kind, &e), 0);
    assert_int_equal(kind, ABI_BIAS_SCALE);
    assert_int_not_equal(bias_parse("softly", &kind, &e), 0);
    assert_int_equal(kind, ABI_BIAS_SCALE);
    assert_non_null(strstr(e.text, "softly"));
    assert_true(is_matrix(amx, &bias));
    assert_true(is_matrix(amx, &half));
    assert_string_equal(family_machine(amx, &half), "x86-amx");
    assert_false(is_matrix(amx, &whole));
    assert_string_equal(family_machine(amx, &whole), v4->machine);
    assert_true(is_matrix(amx, &sparse));
    assert_string_equal(family_machine(amx, &sparse), "x86-amx");
    const struct target *dots = target_find("x86-64-bf16", &e);
    assert_string_equal(family_machine(dots, &half), "x86-bf16");
    assert_string_equal(family_machine(dots, &sparse), "x86-bf16");
    assert_true(dots->dots && !amx->dots && !strcmp(dots->arch, v4->arch));
    assert_false(is_matrix(v4, &half));
    assert_string_equal(family_machine(v4, &half), v4->machine);
    for (const struct target *t = targets; t->name; t++) {
        const struct machine *m = machine_find(family_machine(t, &half), &e);
        assert_non_null(m);
        assert_int_equal(m->kind, t->kind);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrix),    cmocka_unit_test(test_tables),
        cmocka_unit_test(test_unknown),   cmocka_unit_test(test_dtype),
        cmocka_unit_test(test_transform), cmocka_unit_test(test_features),
    };
    comma_locale(); /* numbers of files and languages have a point in every locale */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
