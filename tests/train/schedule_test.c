/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rates by hand. */
#include "model/train/schedule.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void expect(enum schedule_decay decay, double warmup, const double rate[10])
{
    const struct schedule s = {decay, 8, warmup, 10};
    for (uint64_t step = 1; step <= 10; step++)
        if (!(fabs(schedule_rate(&s, step) - 8 * rate[step - 1]) <= 1e-14))
            fail_msg("%s: step %d is %g, not %g", schedule_name(decay), (int)step,
                     schedule_rate(&s, step), 8 * rate[step - 1]);
    assert_true(schedule_rate(&s, 11) == (decay == SCHEDULE_CONSTANT ? 8 : 0));
}

static void test_rates(void **state)
{
    (void)state;
    expect(SCHEDULE_LINEAR, 2,
           (double[]){0.5, 1, 1, 7. / 8, 6. / 8, 5. / 8, 0.5, 3. / 8, 0.25, 0.125});
    expect(SCHEDULE_LINEAR, 0.2,
           (double[]){0.5, 1, 1, 7. / 8, 6. / 8, 5. / 8, 0.5, 3. / 8, 0.25, 0.125});
    expect(SCHEDULE_LINEAR, 0, (double[]){1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1});
    expect(SCHEDULE_CONSTANT, 4, (double[]){0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1, 1});
    expect(SCHEDULE_POLY, 1,
           (double[]){1, 0.9486832980505138, 0.8944271909999159, 0.8366600265340756,
                      0.7745966692414834, 0.7071067811865476, 0.6324555320336759,
                      0.5477225575051661, 0.4472135954999579, 0.31622776601683794});
    expect(SCHEDULE_COSINE, 4,
           (double[]){0.25, 0.5, 0.75, 1, 1, 0.9330127018922193, 0.75, 0.5, 0.25,
                      0.0669872981077807});
}

/* A warm-up as long as the run, or longer; a share that is no whole number of steps. */
static void test_warmup(void **state)
{
    (void)state;
    expect(SCHEDULE_LINEAR, 10, (double[]){0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1});
    expect(SCHEDULE_LINEAR, 1e30, (double[]){0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1});
    assert_int_equal(schedule_warmup_steps(&(struct schedule){0, 1, 0.2843, 7038}), 2001);
    assert_int_equal(schedule_warmup_steps(&(struct schedule){0, 1, 1, 7038}), 1);
}

static void test_names(void **state)
{
    enum schedule_decay d;
    (void)state;
    for (int k = 0; k < SCHEDULE_COUNT; k++) {
        assert_true(schedule_parse(schedule_name((enum schedule_decay)k), &d));
        assert_int_equal(d, k);
    }
    assert_false(schedule_parse("polynomial", &d));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rates),
                                       cmocka_unit_test(test_warmup),
                                       cmocka_unit_test(test_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
