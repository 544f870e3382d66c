/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of a launch without OpenMP: does each step run once on each thread, after the step before has ended on all? */
#include "runtime/device/cpu_threads.h"
#include "tests/support/test.h"
#include <stdatomic.h>

enum { STEPS = 5, MOST = 7, ROUNDS = 50 };

struct seen {
    atomic_uint calls[STEPS][MOST], ended[STEPS], wrong;
};

static void step(void *context, uint32_t k, uint32_t thread, uint32_t threads)
{
    struct seen *s = context;
    if (thread >= threads || threads > MOST || (k && atomic_load(&s->ended[k - 1]) != threads))
        atomic_fetch_add(&s->wrong, 1);
    else
        atomic_fetch_add(&s->calls[k][thread], 1);
    atomic_fetch_add(&s->ended[k], 1);
}

static void steps_follow_one_another(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint32_t threads = 1; threads <= MOST; threads++) {
            struct seen s = {0};
            threads_run(threads, STEPS, step, &s);
            assert_int_equal(s.wrong, 0);
            for (uint32_t k = 0; k < STEPS; k++)
                for (uint32_t t = 0; t < MOST; t++)
                    assert_int_equal(s.calls[k][t], t < threads);
        }
}

static void counts_cores(void **state)
{
    (void)state;
    assert_true(threads_cores() >= 1 && threads_most() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_follow_one_another),
        cmocka_unit_test(counts_cores),
    };
    return cmocka_run_group_tests_name("threads of a launch", tests, NULL, NULL);
}
