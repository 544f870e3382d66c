/* SPDX-License-Identifier: Apache-2.0 */
/* The portfolio of plans (gen/plan/portfolio.c): never dearer than the plan of the machine's own prices, in any pass; much
   cheaper where that is known; every pair of tables that may be measured visits the mask exactly. */
#include "gen/plan/plan.h"
#include "masks/input/load.h"
#include "masks/language/gallery.h"
#include "tests/support/program/options.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Rows of the machine table, each with a target whose code such a machine runs. */
static const char *const rows[][2] = {{"x86-sse", "x86-64-v2"},    {"x86-avx2", "x86-64-v3"},
                                      {"x86-avx512", "x86-64-v4"}, {"x86-bf16", "x86-64-bf16"},
                                      {"x86-amx", "x86-64-amx"},   {"a100", "sm_80"},
                                      {"h100-mma", "sm_90a"}};
static uint32_t longest = 512; /* --few: 128 */
enum { ROWS = sizeof rows / sizeof *rows, TWELVE_HEADS = 12 };

static struct mask *load(const char *name, uint32_t n)
{
    struct error e = {0};
    struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = name, .n = n,
                                   .heads = TWELVE_HEADS};
    struct mask *m = mask_load(&request, NULL, &e);
    if (!m)
        fail_msg("%s: %s", name, e.text);
    return m;
}

static struct plan *build(const struct mask *m, uint32_t row, enum abi_dtype dtype,
                          const struct plan_options *o)
{
    struct error e = {0};
    const struct kernel_request r = {
        .dtype = dtype, .head_dim = 64, .backward = true, .length = m->n};
    const struct target *t = target_find(rows[row][1], &e);
    struct plan *p = plan_build(m, t, &r, machine_find(rows[row][0], &e), o, &e);
    if (!p || plan_check(p, m, &e))
        fail_msg("%s: %s", rows[row][0], e.text);
    return p;
}

static void compare(const char *name, const struct mask *m, uint32_t row, enum abi_dtype dtype)
{
    const struct plan_options plain = {.plain = true}, best = {0};
    struct plan *before = build(m, row, dtype, &plain), *p = build(m, row, dtype, &best);
    for (int backward = 0; backward < 2; backward++)
        for (uint32_t threads = 1; threads <= 2; threads++) {
            double ours = plan_predict(p, backward, 0, 1, threads),
                   theirs = plan_predict(before, backward, 0, 1, threads);
            if (!(ours <= theirs * (1 + 1e-9)))
                fail_msg("%s n=%u %s: %g s, %g s by its own prices alone", name, m->n,
                         rows[row][0], ours, theirs);
        }
    plan_destroy(before);
    plan_destroy(p);
}

static void test_never_dearer(void **state)
{
    (void)state;
    for (const struct gallery_entry *g = mask_gallery; g->name; g++)
        for (uint32_t n = 128; n <= longest; n *= 4) {
            struct mask *m = load(g->name, n);
            for (uint32_t row = 0; row < ROWS; row++) {
                compare(g->name, m, row, ABI_BF16);
                if (strcmp(rows[row][0], "h100-mma"))
                    compare(g->name, m, row, ABI_F32);
            }
            mask_destroy(m);
        }
}

/* The backward pass's share of the cost by the target's own prices only. */
static double share(const char *name, uint32_t n, uint32_t row, bool backward)
{
    const struct plan_options plain = {.plain = true}, best = {0};
    struct mask *m = load(name, n);
    struct plan *before = build(m, row, ABI_F32, &plain), *p = build(m, row, ABI_F32, &best);
    double ret = plan_predict(p, backward, 0, 1, 1) / plan_predict(before, backward, 0, 1, 1);
    const struct plan_pass *t = backward ? &p->transposed : &p->forward;
    if (!strstr(t->summary[0].reason, "cheaper here: "))
        fail_msg("%s: '%s' does not say who chose", name, t->summary[0].reason);
    plan_destroy(before);
    plan_destroy(p);
    mask_destroy(m);
    return ret;
}

static void test_known_gains(void **state)
{
    (void)state;
    assert_true(share("fixed", 512, 1, true) < 0.5);        /* prices of x86-sse */
    assert_true(share("longformer", 128, 2, false) < 0.85); /* lines for whole row blocks */
    assert_true(share("fixed", 128, 2, false) < 0.9);
}

/* The same tables, as a kernel file has them, come to the same. */
static void check_tables(const struct plan *p, const struct mask *m)
{
    struct error e = {0};
    struct plan *q =
        plan_of_tables(m, p->target, &p->config, p->machine, &p->forward, &p->transposed, &e);
    if (!q || plan_check(q, m, &e))
        fail_msg("%s", e.text);
    for (int backward = 0; backward < 2; backward++) {
        double ours = plan_predict(p, backward, 0, 1, 2),
               again = plan_predict(q, backward, 0, 1, 2);
        if (!(again < ours * 1.000001 && again > ours * 0.999999))
            fail_msg("%s: %g s, from the tables alone %g s", p->forward.prices, ours, again);
    }
    assert_string_equal(q->forward.summary[0].lowering, p->forward.summary[0].lowering);
    plan_destroy(q);
}

static uint32_t check_choices(const char *name, uint32_t n, uint32_t row)
{
    enum { MOST = 8 };
    struct error e = {0};
    struct plan_choice c[MOST];
    struct mask *m = load(name, n);
    const struct kernel_request r = {.head_dim = 64, .backward = true, .length = n};
    const struct target *t = target_find(rows[row][1], &e);
    uint32_t count = plan_choices(m, t, &r, machine_find(rows[row][0], &e), NULL, c, MOST, &e);
    for (uint32_t k = 0; k < count; k++) {
        struct plan_options o = {.forward = c[k].forward, .transposed = c[k].transposed};
        struct plan *p = build(m, row, ABI_F32, &o);
        assert_string_equal(p->forward.prices, c[k].forward);
        assert_string_equal(p->transposed.prices, c[k].transposed);
        double seconds = plan_predict(p, false, 0, 1, 1) + plan_predict(p, true, 0, 1, 1);
        assert_true(seconds < c[k].seconds * 1.001 && seconds > c[k].seconds * 0.999);
        assert_true(!k || c[k].seconds >= c[k - 1].seconds);
        check_tables(p, m);
        plan_destroy(p);
    }
    mask_destroy(m);
    return count;
}

static void test_choices(void **state)
{
    (void)state;
    assert_true(check_choices("fixed", 128, 2) > 3);
    assert_true(check_choices("fixed", 512, 1) > 3);
    assert_int_equal(check_choices("dense", 128, 2), 1); /* all plans are alike */
    assert_true(check_choices("longformer", 256, 2) > 1);
}

static void test_unknown_name_is_none(void **state)
{
    (void)state;
    const struct plan_options none = {0}, odd = {.forward = "x87", .transposed = ""};
    struct mask *m = load("fixed", 128);
    struct plan *p = build(m, 2, ABI_F32, &none), *q = build(m, 2, ABI_F32, &odd);
    assert_string_equal(p->forward.prices, q->forward.prices);
    assert_string_equal(p->transposed.prices, q->transposed.prices);
    plan_destroy(p);
    plan_destroy(q);
    mask_destroy(m);
}

int main(int argc, char **argv)
{
    if (test_option(argc, argv, "--few"))
        longest = 128;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_never_dearer),
        cmocka_unit_test(test_known_gains),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_unknown_name_is_none),
    };
    return cmocka_run_group_tests_name("portfolio", tests, NULL, NULL);
}
