/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of the paths, on a GPU whose times rise in steps: dense is found where it is the best, and a mask that keeps
   nothing is refused. */
#include "tests/snap/made.h"
#include "tests/support/program/options.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 8 };

static int stride = 1; /* --few: every second budget */

static struct snap_request gpu_request(double share, double retain)
{
    struct snap_request r = made_request("h100-mma", share);
    r.retain = retain;
    r.batch = BATCH;
    return r;
}

static void no_mask_is_worse_than_dense(void **unused)
{
    (void)unused;
    struct importance p = made_importance(1, 4, 192, 3);
    for (int k = 80; k <= 100; k += 5 * stride) {
        struct snap_request r = gpu_request(0, k / 100.);
        struct snap_result s = made_solution(&p, &r);
        assert_true(s.best.share <= 1 && s.best.retained >= k / 100. - 1e-9);
        snap_result_finish(&s);
    }
    struct snap_request r = gpu_request(1, 0);
    struct snap_result s = made_solution(&p, &r);
    for (int k = 0; k < SNAP_KINDS; k++)
        assert_true(s.kind[k].share <= 1 && s.kind[k].retained == 1);
    snap_result_finish(&s);
    importance_finish(&p);
}

static void more_time_never_keeps_less(void **unused)
{
    (void)unused;
    struct importance p = made_importance(1, 4, 192, 3);
    double before[SNAP_KINDS] = {0};
    for (int k = 72; k <= 100; k += 4 * stride) {
        struct snap_request r = gpu_request(k / 100., 0);
        struct snap_result s = made_solution(&p, &r);
        for (int o = 0; o < SNAP_KINDS; o++) {
            assert_true(s.kind[o].retained >= before[o]);
            before[o] = s.kind[o].retained;
        }
        snap_result_finish(&s);
    }
    importance_finish(&p);
}

/* The share that the message names. */
static double refused_share(const struct importance *p, double share)
{
    struct snap_request r = gpu_request(share, 0);
    struct snap_result s;
    struct error e = {0};
    assert_int_equal(snap_solve(p, &r, &s, &e), -1);
    assert_int_equal(e.kind, ERROR_FALSE);
    const char *at = strstr(e.text, "no mask is within that time: the least that can be ");
    assert_non_null(at);
    return strtod(strstr(at, " is 0") + 4, NULL);
}

static void an_empty_mask_is_none(void **unused)
{
    (void)unused;
    struct importance p = made_importance(1, 1, 64, 3);
    struct snap_request r = gpu_request(1, 0);
    struct snap_result s = made_solution(&p, &r);
    double empty = s.least_share + .001;
    snap_result_finish(&s);
    double least = refused_share(&p, empty);
    assert_true(least > empty && refused_share(&p, .001) == least);
    r.share = least;
    s = made_solution(&p, &r);
    for (int k = 0; k < SNAP_KINDS; k++)
        assert_true(!s.kind[k].mask || s.kind[k].retained > 0);
    snap_result_finish(&s);
    importance_finish(&p);
}

int main(int argc, char **argv)
{
    if (test_option(argc, argv, "--few"))
        stride = 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_mask_is_worse_than_dense),
        cmocka_unit_test(more_time_never_keeps_less),
        cmocka_unit_test(an_empty_mask_is_none),
    };
    return cmocka_run_group_tests_name("gen/snap/ends", tests, NULL, NULL);
}
