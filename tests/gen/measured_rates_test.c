/* SPDX-License-Identifier: Apache-2.0 */
/* Rates that a calibration alone knows (loop, exposed, wake): what they add to predictions, and what they do not touch. */
#include "gen/plan/plan.h"
#include "masks/input/load.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HEADS = 12 };

struct case_of {
    const char *mask;
    uint32_t n;
    bool loops; /* row blocks have tiles */
};

static const struct case_of cases[] = {
    {"dense", 128, true}, {"dense", 512, true},      {"blocks(4)", 256, true},
    {"none", 128, false}, {"logsparse", 128, false}, {"star", 2048, false},
};
enum { CASES = sizeof cases / sizeof *cases };

static struct plan *build(const struct case_of *c, const struct machine *machine)
{
    struct error e = {0};
    const struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = c->mask, .n = c->n,
                                         .heads = HEADS};
    const struct kernel_request r = {.head_dim = 64, .backward = true, .length = c->n};
    const struct plan_options plain = {.plain = true};
    struct mask *m = mask_load(&request, NULL, &e);
    struct plan *p =
        m ? plan_build(m, target_find("x86-64-v4", &e), &r, machine, &plain, &e) : NULL;
    if (!p)
        fail_msg("%s: %s", c->mask, e.text);
    mask_destroy(m);
    return p;
}

static double predict(const struct case_of *c, const struct machine *machine, uint32_t threads)
{
    struct plan *p = build(c, machine);
    double ret = plan_predict(p, false, 0, 1, threads);
    plan_destroy(p);
    return ret;
}

/* Seconds that a forward pass of one thread takes more with `changed`. */
static double more(const struct case_of *c, const struct machine *changed, uint32_t threads)
{
    return predict(c, changed, threads) - predict(c, machine_find("x86-avx512", NULL), threads);
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 + 1e-6 * fabs(b);
}

static void test_loop(void **state)
{
    (void)state;
    struct machine m = *machine_find("x86-avx512", NULL);
    m.rate[PASS_FORWARD][RATE_LOOP] = 1e-7;
    for (int k = 0; k < CASES; k++) {
        const double row_blocks = cases[k].loops ? HEADS * cases[k].n / 32.0 : 0;
        if (!near(more(&cases[k], &m, 1), row_blocks * 1e-7))
            fail_msg("%s n=%u: %g s more, for %g row blocks", cases[k].mask, cases[k].n,
                     more(&cases[k], &m, 1), row_blocks);
    }
}

/* Where a loop is dear, lines take what tiles took. */
static void test_loop_is_weighed(void **state)
{
    (void)state;
    const struct case_of window = {"window(20)", 256, true};
    struct machine m = *machine_find("x86-avx512", NULL);
    for (int dear = 0; dear <= 1; dear++) {
        m.rate[PASS_FORWARD][RATE_LOOP] = dear * 1e-4;
        struct plan *p = build(&window, &m);
        assert_int_equal(!strstr(p->forward.summary[0].lowering, "tiles"), dear);
        plan_destroy(p);
    }
}

/* Tensors of 25 MB: dense hides what it loads, star hides nothing. */
static void test_exposed(void **state)
{
    (void)state;
    const struct case_of dense = {"dense", 2048, true}, star = {"star", 2048, false};
    const double bytes = 4.0 * HEADS * 2048 * 64 * sizeof(float);
    struct machine m = *machine_find("x86-avx512", NULL);
    m.rate[PASS_FORWARD][RATE_EXPOSED] = 1e-10;
    assert_true(near(more(&dense, &m, 1), 0));
    assert_true(more(&star, &m, 1) > 0.9 * bytes * 1e-10);
    assert_true(more(&star, &m, 1) < bytes * 1e-10);
}

static void test_wake(void **state)
{
    (void)state;
    struct machine m = *machine_find("x86-avx512", NULL);
    m.wake = 1e-5;
    for (int k = 0; k < CASES && cases[k].loops; k++) { /* those above their floors */
        assert_true(near(more(&cases[k], &m, 1), 0));
        assert_true(near(more(&cases[k], &m, 2), 1e-5));
    }
}

/* No row for a CPU has them: their predictions are as they were. */
static void test_table_lacks_them(void **state)
{
    (void)state;
    int cpus = 0;
    for (const struct machine *m = machines; m->name; m++) {
        assert_true(m->wake == 0);
        cpus += m->kind == TARGET_CPU;
        for (int pass = 0; pass < PASSES && m->kind == TARGET_CPU; pass++)
            assert_true(m->rate[pass][RATE_LOOP] + m->rate[pass][RATE_EXPOSED] == 0);
    }
    assert_int_equal(cpus, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_loop_is_weighed),
        cmocka_unit_test(test_exposed),
        cmocka_unit_test(test_wake),
        cmocka_unit_test(test_table_lacks_them),
    };
    return cmocka_run_group_tests_name("measured_rates", tests, NULL, NULL);
}
