/* SPDX-License-Identifier: Apache-2.0 */
/* maskc bench: a kernel file is predicted by the plan that it holds, and dense that takes too long is measured at a
   length that fits and says so. */
#include "tests/cli/fixtures.h"
#include "tests/cli/shell.h"
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static double number(const json_t *j, const char *key)
{
    const json_t *x = json_object_get(j, key);
    assert_true(json_is_number(x));
    return json_number_value(x);
}

static void test_file_has_its_plan(void **state)
{
    (void)state;
    shell_says("compile fixed -n 128 --heads 2 --head-dim 16 --machine x86-sse -o fixed.mkb",
               "");
    json_t *bench = shell_json("bench fixed.mkb --seconds 0.01 --threads 1 --json", 0);
    json_t *plan = shell_json("plan fixed -n 128 --heads 2 --head-dim 16 --machine x86-sse "
                              "--threads 1 --json",
                              0);
    static const char *const pass[] = {"forward", "backward"};
    for (size_t k = 0; k < 2; k++) {
        const json_t *r = json_array_get(json_object_get(bench, "results"), k);
        double ours = number(r, "predicted_s"),
               planned = number(json_object_get(plan, pass[k]), "predicted_s");
        assert_true(fabs(ours / planned - 1) < 1e-5);
        assert_string_equal(json_string_value(json_object_get(r, "machine")), "x86-sse");
    }
    json_decref(bench);
    json_decref(plan);
}

static void test_dense_is_extrapolated(void **state)
{
    (void)state;
    json_t *j =
        shell_json("bench 'window(8)' -n 512,4096 --heads 1 --dtype f32 --head-dim 16 "
                   "--pass forward --seconds 0.01 --threads 1 --machine x86-avx2 --json",
                   0);
    const json_t *list = json_object_get(j, "results");
    assert_int_equal(json_array_size(list), 2);
    const json_t *near = json_array_get(list, 0), *far = json_array_get(list, 1);
    assert_true(json_is_false(json_object_get(near, "dense_extrapolated")));
    assert_true(json_is_true(json_object_get(far, "dense_extrapolated")));
    assert_true(number(far, "dense_length") < 4096);
    double times = number(far, "dense_predicted_s") / number(near, "dense_predicted_s");
    assert_true(times > 30 && times < 130); /* 64 times the entries */
    assert_true(number(far, "dense_s") > 5 * number(near, "dense_s"));
    json_decref(j);
    shell_says("bench 'window(8)' -n 4096 --heads 1 --dtype f32 --head-dim 16 --pass forward "
               "--seconds 0.01 --threads 1 --machine x86-avx2",
               "from its rate at n=");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_has_its_plan),
        cmocka_unit_test(test_dense_is_extrapolated),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: bench_test MASKC\n");
        return 2;
    }
    shell_start(argv[1]);
    shell_compile_fast();
    int failed = cmocka_run_group_tests_name("bench", tests, NULL, NULL);
    shell_stop();
    return failed;
}
