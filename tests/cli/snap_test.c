/* SPDX-License-Identifier: Apache-2.0 */
/* maskc snap as a person and as a script use it: the file that it writes, what it says of it, and what it refuses
   without leaving a file. */
#include "tests/cli/fixtures.h"
#include "tests/cli/shell.h"
#include "tests/support/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS = 3, N = 64 };
#define OPTIONS " --machine x86-avx512 --target x86-64-v4 --threads 1 "

/* Attention that falls with the distance, each head in another way; and arrays that are none. */
static int set_up(void **state)
{
    static float value[2 * HEADS * N * N];
    (void)state;
    for (int k = 0; k < 2 * HEADS * N * N; k++) {
        int h = k / (N * N), i = k / N % N, j = k % N;
        value[k] = (float)(exp(-abs(i - j) / (1. + 3 * h)) + .02 * ((i * 7 + j * 13) % 11));
    }
    fixture_npy("p.npy", "<f4", "(2, 3, 64, 64)", value, sizeof value);
    fixture_npy("one.npy", "<f4", "(64, 64)", value, sizeof value / 6);
    unsigned noise = 1;
    enum { NOISE = 3 * 128 * 128 };
    float *random = malloc(NOISE * sizeof *random);
    for (int k = 0; k < NOISE; k++)
        random[k] = (float)pow((noise = noise * 1664525 + 1013904223) / 4294967296., 60);
    fixture_npy("noise.npy", "<f4", "(3, 128, 128)", random, NOISE * sizeof *random);
    free(random);
    value[130] = NAN;
    fixture_npy("nan.npy", "<f4", "(3, 64, 64)", value, sizeof value / 2);
    for (int k = 0; k < N * N; k++)
        value[k] = k / N / 32 == k % N / 32;
    fixture_npy("blocks.npy", "<f4", "(64, 64)", value, sizeof value / 6);
    return 0;
}

static double number(const json_t *j, const char *name)
{
    json_t *v = json_object_get(j, name);
    if (!json_is_number(v))
        fail_msg("%s is no number", name);
    return json_number_value(v);
}

/* Predicted seconds of all layers of a mask, as plan says of each. */
static double plan_seconds(const char *mask, int layers)
{
    double sum = 0;
    for (int l = 0; l < layers; l++) {
        char line[256];
        snprintf(line, sizeof line, "plan %s --json --layer %d" OPTIONS, mask, l);
        json_t *j = shell_json(line, 0);
        sum += number(json_object_get(j, "forward"), "predicted_s");
        json_decref(j);
    }
    return sum;
}

static void the_file_is_what_json_says(void **unused)
{
    (void)unused;
    json_t *j = shell_json("snap p.npy --budget .4 --json -o m.npy" OPTIONS, 0);
    double share = number(j, "share"), dense = number(j, "dense_predicted_s"), kept = 0;
    assert_true(number(j, "budget") == .4 && share <= .4 && share > .2);
    assert_true(fabs(number(j, "predicted_s") - share * dense) < 1e-12);
    assert_true(number(j, "retained") <= number(j, "bound") && number(j, "bound") <= 1);
    json_t *others = json_object_get(j, "others"), *heads = json_object_get(j, "heads"), *one;
    size_t k;
    static const char *const names[] = {"magnitude", "tiles", "window", "distances"};
    assert_int_equal(json_array_size(others), 4);
    json_array_foreach(others, k, one)
    {
        assert_string_equal(json_string_value(json_object_get(one, "kind")), names[k]);
        if (json_is_number(json_object_get(one, "retained")))
            assert_true(number(one, "retained") <= number(j, "retained"));
    }
    assert_int_equal(json_array_size(heads), 2 * HEADS);
    json_array_foreach(heads, k, one)
    {
        assert_int_equal(json_integer_value(json_array_get(json_object_get(one, "at"), 1)),
                         k % HEADS);
        kept += number(one, "density") / (2 * HEADS);
    }
    assert_true(fabs(kept - number(j, "density")) < 1e-9);
    assert_true(json_is_null(json_object_get(j, "measured_s")));
    assert_true(fabs(plan_seconds("m.npy", 2) - number(j, "predicted_s")) < 1e-9 * dense);
    json_decref(j);
}

static void other_goals_are_met(void **unused)
{
    (void)unused;
    json_t *j = shell_json("snap p.npy --retain .7 --json -o r.safetensors" OPTIONS, 0);
    assert_true(number(j, "retained") >= .7 - 1e-9 &&
                json_is_null(json_object_get(j, "budget")));
    double us = number(j, "predicted_s") * 1e6;
    json_decref(j);
    char line[256];
    snprintf(line, sizeof line, "snap p.npy --budget-us %.9f --json -o t.npy" OPTIONS,
             us + 1e-6);
    j = shell_json(line, 0);
    assert_true(number(j, "retained") >= .7 - 1e-9);
    assert_true(number(j, "predicted_s") * 1e6 <= us + 1e-6);
    json_decref(j);
    j = shell_json("snap p.npy --budget .5 --objective training --uniform --keep-rows --json "
                   "-o u.npy" OPTIONS,
                   0);
    assert_string_equal(json_string_value(json_object_get(j, "objective")), "training");
    assert_string_equal(json_string_value(json_object_get(j, "kind")), "snap");
    json_decref(j);
    j = shell_json("show u.npy --json", 0);
    json_t *one;
    size_t k;
    json_array_foreach(json_object_get(j, "masks"), k, one)
        assert_true(number(one, "empty_rows") == 0);
    json_decref(j);
}

/* A one-head importance is priced as plan prices its mask, for 12 heads; what can be stated is text. */
static void one_head_and_text(void **unused)
{
    (void)unused;
    json_t *j = shell_json("snap blocks.npy --retain 1 --json -o b.mask" OPTIONS, 0);
    assert_true(fabs(plan_seconds("b.mask", 1) - number(j, "predicted_s")) < 1e-12);
    json_decref(j);
    j = shell_json("show b.mask --json", 0);
    assert_int_equal(json_integer_value(json_object_get(j, "heads")), 1);
    assert_true(number(json_array_get(json_object_get(j, "masks"), 0), "active") == N * N / 2);
    json_decref(j);
}

static void the_table_names_the_best(void **unused)
{
    (void)unused;
    struct outcome o = shell_run("", "snap one.npy --budget .6 -o m.npy" OPTIONS);
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "* snap"));
    assert_non_null(strstr(o.out, "  magnitude"));
    assert_non_null(strstr(o.out, "m.npy: snap; no kind keeps more within the time"));
    assert_string_equal(o.err, "");
    outcome_finish(&o);
}

/* clang-format off */
static const struct {
    const char *line;
    int code;
    const char *error;
} wrong[] = {
    {"p.npy --budget .001 -o x.npy", 1, "no mask is within that time: the least that can be reached is 0."},
    {"p.npy --budget 1.5 -o x.npy", 2, "--budget 1.5 is out of range, a share above 0 and at most 1 is expected"},
    {"p.npy --budget 0 -o x.npy", 2, "--budget 0 is out of range"},
    {"p.npy --budget-us -1 -o x.npy", 2, "--budget-us -1: a time above 0 is expected"},
    {"p.npy --retain 2 -o x.npy", 2, "--retain 2 is out of range"},
    {"p.npy -o x.npy", 2, "one of --budget SHARE, --budget-us T and --retain R is expected"},
    {"p.npy --budget .5 --retain .5 -o x.npy", 2, "one of --budget SHARE"},
    {"p.npy --budget .5", 2, "-o FILE.npy, FILE.safetensors or FILE.mask is expected"},
    {"p.npy --budget .5 -o x.png", 2, "-o FILE.npy, FILE.safetensors or FILE.mask is expected"},
    {"p.npy --budget .5 --heads 4 -o x.npy", 2, "p.npy: 3 heads, --heads 4 needs 1 or 4"},
    {"p.npy --budget .5 --objective speed -o x.npy", 2, "--objective speed: forward or training is expected"},
    {"p.npy --budget .5 --objective training --forward-only -o x.npy", 2, "--objective training needs the backward pass"},
    {"nan.npy --budget .5 -o x.npy", 2, "nan.npy: NaN at head 0, query 2, key 2, an importance of 0 or more is expected"},
    {"star -n 64 --budget .5 -o x.npy", 2, "star: an importance is an array"},
    {"gone.npy --budget .5 -o x.npy", 2, "gone.npy"},
    {"p.npy --budget .5 --clock cpu -o x.npy", 2, "--clock goes with --measure"},
    {"p.npy --budget .5 --keep 10 -o x.npy", 2, "--keep is not an option of snap, --keep-rows is"},
    {"p.npy --keep --budget .5 -o x.npy", 2, "--keep is not an option of snap, --keep-rows is"},
    {"noise.npy --budget .3 -o x.mask", 2, "write FILE.npy instead"},
};
/* clang-format on */

static void what_is_wrong_leaves_no_file(void **unused)
{
    (void)unused;
    char *before = shell_listing();
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        char line[256];
        snprintf(line, sizeof line, "snap %s" OPTIONS, wrong[k].line);
        struct outcome o = shell_run("", line);
        if (o.code != wrong[k].code || !strstr(o.err, wrong[k].error) || o.out[0])
            fail_msg("maskc %s: exit code %d, %s%s", line, o.code, o.err, o.out);
        outcome_finish(&o);
    }
    char *after = shell_listing();
    assert_string_equal(before, after);
    free(before);
    free(after);
}

static void measured_masks_keep_as_much(void **unused)
{
    (void)unused;
    struct outcome o =
        shell_run("", "snap p.npy --budget .5 --measure 2 --threads 1 --json -o k.npy");
    if (o.code == 3)
        skip();
    assert_int_equal(o.code, 0);
    json_t *j = json_loads(o.out, 0, NULL), *one;
    size_t k;
    double measured = number(j, "measured_s");
    int count = json_is_number(json_object_get(json_object_get(j, "snap"), "measured_s"));
    json_array_foreach(json_object_get(j, "others"), k,
                       one) if (json_is_number(json_object_get(one, "measured_s")))
    {
        assert_true(measured <= number(one, "measured_s"));
        assert_true(number(one, "retained") >= number(j, "retained") - .02);
        count++;
    }
    assert_int_equal(count, 2);
    json_decref(j);
    outcome_finish(&o);
}

int main(int argc, char **argv)
{
    assert_int_equal(argc, 2);
    shell_start(argv[1]);
    shell_compile_fast();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_is_what_json_says),
        cmocka_unit_test(other_goals_are_met),
        cmocka_unit_test(one_head_and_text),
        cmocka_unit_test(the_table_names_the_best),
        cmocka_unit_test(what_is_wrong_leaves_no_file),
        cmocka_unit_test(measured_masks_keep_as_much),
    };
    int failed = cmocka_run_group_tests_name("cli/snap", tests, set_up, NULL);
    shell_stop();
    return failed;
}
