/* SPDX-License-Identifier: Apache-2.0 */
/* maskc bench: a kernel file is predicted by the plan that it holds, a layer is named, and dense that takes too long is
   measured at a length that fits and says so. */
#include "tests/cli/fixtures.h"
#include "tests/cli/shell.h"
#include <jansson.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static double number(const json_t *j, const char *key)
{
    const json_t *x = json_object_get(j, key);
    assert_true(json_is_number(x));
    return json_number_value(x);
}

static void make_file_of_two_layers(void)
{
    static const char mask[] = "length 128\nheads 2\nlayers 2\nlayer 0: fixed\nlayer 1: star";
    fixture_write("two.mask", mask, sizeof mask - 1);
    shell_says("compile two.mask --head-dim 16 --machine x86-sse -o two.mkb", "");
}

static void test_file_has_its_plan(void **state)
{
    (void)state;
    make_file_of_two_layers();
    json_t *bench = shell_json("bench two.mkb --seconds 0.01 --threads 1 --json", 0);
    json_t *plan =
        shell_json("plan two.mask --head-dim 16 --machine x86-sse --threads 1 --json", 0);
    static const char *const pass[] = {"forward", "backward"};
    for (size_t k = 0; k < 2; k++) {
        const json_t *r = json_array_get(json_object_get(bench, "results"), k);
        double ours = number(r, "predicted_s"),
               planned = number(json_object_get(plan, pass[k]), "predicted_s");
        assert_true(fabs(ours / planned - 1) < 1e-5);
        assert_string_equal(json_string_value(json_object_get(r, "machine")), "x86-sse");
        assert_true(number(r, "layer") == 0);
    }
    json_decref(bench);
    json_decref(plan);
}

static void test_layer_is_named(void **state)
{
    (void)state;
    shell_says("bench two.mkb --layer 1 --pass forward --seconds 0.001 --threads 1 --clock cpu",
               "milliseconds; times of layer 1\n");
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
    shell_says("bench 'window(8)' -n 2048 --kv-length 4096 --heads 1 --dtype f32 --head-dim 16 "
               "--pass forward --seconds 0.01 --threads 1 --clock cpu --machine x86-avx2",
               "\n* dense of n=2048x4096 is too long for --seconds: from its rate at n=");
}

/* Another winner is written into every entry. */
static void damage_store(void)
{
    assert_int_equal(system("for f in \"$XDG_CACHE_HOME\"/maskc/measured-*.json; do sed -i "
                            "'s/\"forward\": \"/&y/' \"$f\" || exit 1; done"),
                     0);
}

/* The fastest plan is stored, and plan and compile take it; a damaged file is ignored with a word. */
static void test_measured_plans(void **state)
{
    (void)state;
    const char *mask =
        "fixed -n 128 --heads 2 --head-dim 16 --machine x86-avx2 --target x86-64-v2";
    char line[512];
    snprintf(line, sizeof line, "plan %s --measured --json", mask);
    json_t *j = shell_json(line, 0); /* before there is one */
    json_decref(j);
    snprintf(line, sizeof line,
             "bench %s --dtype f32 --threads 1 --seconds 0.01 --measure-plans 3", mask);
    struct outcome o = shell_run("", line);
    if (o.code || !strstr(o.err, "plan 1 of ") || !strstr(o.err, ", kept\n"))
        fail_msg("%s: exit code %d, %s", line, o.code, o.err);
    for (const char *at = o.err, *end; (end = strchr(at, '\n')); at = end + 1)
        assert_true(end - at <= 100 || !strncmp(at, "maskc: ", 7)); /* a busy machine */
    outcome_finish(&o);
    snprintf(line, sizeof line, "plan %s --measured", mask);
    o = shell_run("", line);
    assert_true(o.code == 0 && !*o.err);
    outcome_finish(&o);
    snprintf(line, sizeof line, "compile %s --measured -o measured.mkb", mask);
    shell_says(line, "x86-64-v2");
    shell_says("verify measured.mkb --threads 1", "checks hold");
    damage_store();
    snprintf(line, sizeof line, "plan %s --measured", mask);
    o = shell_run("", line);
    if (o.code || !strstr(o.err, "its checksum is wrong; it is ignored"))
        fail_msg("%s: exit code %d, %s", line, o.code, o.err);
    outcome_finish(&o);
}

/* A program that computes until it is killed, for a minute at most. */
static pid_t start_burner(void)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child)
        return child;
    alarm(60);
    for (volatile unsigned spin = 0;;)
        spin++;
}

/* Two programs on one CPU: each runs half of the time. Plans count the CPUs that a launch would use. */
static void test_busy_machine(void **state)
{
    (void)state;
    const char *bench =
        "bench star -n 256 --heads 2 --dtype f32 --head-dim 16 --pass forward --threads 1 "
        "--seconds 0.3";
    char line[256];
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int k = 0; k < CPU_SETSIZE && !CPU_COUNT(&one); k++)
        if (CPU_ISSET(k, &all))
            CPU_SET(k, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    json_t *plan = shell_json("plan star -n 16 --json", 0);
    assert_int_equal(json_integer_value(json_object_get(plan, "threads")), 1);
    json_decref(plan);
    const pid_t burner = start_burner();
    snprintf(line, sizeof line, "%s --json", bench);
    struct outcome json = shell_run("", line), text = shell_run("", bench);
    snprintf(line, sizeof line, "%s --clock cpu", bench);
    struct outcome own = shell_run("", line);
    kill(burner, SIGKILL);
    waitpid(burner, NULL, 0);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    json_t *j = json_loads(json.out, 0, NULL);
    assert_true(json_is_true(json_object_get(j, "busy")));
    const double share = number(json_array_get(json_object_get(j, "results"), 0), "cpu_share");
    assert_true(share > 0 && share < 0.8);
    assert_string_equal(json.err, "");
    assert_non_null(strstr(text.err, "maskc: the machine is busy: the threads ran "));
    assert_string_equal(strchr(text.err, '\n'), "\n");
    assert_true(own.code == 0 && !*own.err);
    json_decref(j);
    outcome_finish(&json);
    outcome_finish(&text);
    outcome_finish(&own);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_has_its_plan),     cmocka_unit_test(test_layer_is_named),
        cmocka_unit_test(test_dense_is_extrapolated), cmocka_unit_test(test_measured_plans),
        cmocka_unit_test(test_busy_machine),
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
