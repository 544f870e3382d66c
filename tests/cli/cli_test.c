/* SPDX-License-Identifier: Apache-2.0 */
/* The command line where all goes well: what is printed and what is written; and that a wrong kernel is reported
   so. failures_test.c has what goes wrong. */
#include "tests/cli/fixtures.h"
#include "tests/cli/shell.h"
#include "tests/support/test.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_help(void **state)
{
    (void)state;
    static const char *const command[] = {"show",    "make",    "plan",   "emit",  "compile",
                                          "info",    "verify",  "run",    "bench", "cache",
                                          "devices", "gallery", "support"};
    shell_says("", "Usage: maskc COMMAND");
    shell_says("--version", "maskc 0.");
    for (size_t k = 0; k < sizeof command / sizeof *command; k++) {
        char line[64], says[64];
        snprintf(says, sizeof says, "maskc %s", command[k]);
        shell_says("", says);
        snprintf(line, sizeof line, "%s --help", command[k]);
        snprintf(says, sizeof says, "Usage: maskc %s", command[k]);
        shell_says(line, says);
    }
    shell_says("run --help", "--offsets=O.npy");
    shell_says("help run", "--offsets=O.npy");
    shell_says("bench --help", "--plot=FIGURE");
}

/* bench takes rows of the table's launch group that are not neighbours there. */
static void test_help_titles_once(void **state)
{
    (void)state;
    struct outcome o = shell_run("", "bench --help");
    const char *title = strstr(o.out, "\n Launch:\n");
    assert_non_null(title);
    assert_null(strstr(title + 1, "\n Launch:\n"));
    outcome_finish(&o);
}

/* Fields as "name:type": s string, i integer, r number or null, b boolean, a array, o object. */
static void check_fields(const json_t *j, const char *const *fields)
{
    for (; *fields; fields++) {
        char name[40];
        const char *colon = strchr(*fields, ':');
        snprintf(name, sizeof name, "%.*s", (int)(colon - *fields), *fields);
        const json_t *v = json_object_get(j, name);
        bool ok = colon[1] == 's'   ? json_is_string(v)
                  : colon[1] == 'i' ? json_is_integer(v)
                  : colon[1] == 'b' ? json_is_boolean(v)
                  : colon[1] == 'a' ? json_is_array(v)
                  : colon[1] == 'o' ? json_is_object(v)
                                    : json_is_number(v) || json_is_null(v);
        if (!ok)
            fail_msg("field %s", *fields);
    }
}

static const json_t *first_of(const json_t *j, const char *name)
{
    const json_t *list = json_object_get(j, name);
    assert_true(json_array_size(list) > 0);
    return json_array_get(list, 0);
}

static void test_json(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *top[8], *list, *element[24];
    } row[] = {
        {"show two.mask --json",
         {"length:i", "heads:i", "layers:i", "distinct:i", "masks:a"},
         "masks",
         {"heads:a", "at:a", "active:i", "sparsity:r", "empty_rows:i", "symmetric:b",
          "structure:a"}},
        {"plan star -n 64 --json",
         {"target:s", "machine:s", "masks:a"},
         "masks",
         {"heads:a", "at:a", "pass:s", "family:s", "lowering:s", "executed_fraction:r",
          "predicted_s:r", "dense_predicted_s:r", "floor_s:r", "bound:s", "rejected:a",
          "kernels:o"}},
        {"verify good.mkb --json",
         {"ok:b", "checks:a"},
         "checks",
         {"name:s", "error:r", "tolerance:r", "ok:b"}},
        {"info good.mkb --json",
         {"length:i", "heads:i", "targets:a", "plans:a"},
         "targets",
         {"name:s", "compiler:s", "code_bytes:i"}},
        {"bench star -n 32 --heads 1 --dtype f32 --head-dim 16 --seconds 0.1 --dropout 0.1 "
         "--json",
         {"device:s", "threads:i", "results:a", "predicted_within_20_percent:r",
          "predicted_speedup_within_20_percent:r"},
         "results",
         {"mask:s",     "length:i",   "kv_length:i",   "heads:i",
          "batch:i",    "head_dim:i", "dtype:s",       "pass:s",
          "lowering:s", "median_s:r", "p10_s:r",       "p90_s:r",
          "dense_s:r",  "speedup:r",  "predicted_s:r", "dense_predicted_s:r",
          "floor_s:r",  "hard_s:r",   "dropout:r",     "undropped_s:r"}},
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        json_t *j = shell_json(row[k].line, 0);
        check_fields(j, row[k].top);
        check_fields(first_of(j, row[k].list), row[k].element);
        json_decref(j);
    }
}

/* The family that a plan's first mask has in a pass, forward at 0 and backward at 1. */
static void check_family(const char *options, size_t pass, const char *family)
{
    char line[160];
    snprintf(line, sizeof line, "plan strided -n 390 --dtype bf16 --target sm_90a --json %s",
             options);
    json_t *j = shell_json(line, 0);
    const json_t *entry = json_array_get(json_object_get(j, "masks"), pass);
    assert_string_equal(json_string_value(json_object_get(entry, "family")), family);
    const json_t *rejected = json_array_get(json_object_get(entry, "rejected"), 0);
    check_fields(rejected, (const char *const[]){"family:s", "lowering:s", "predicted_s:r",
                                                 "at_least:b", NULL});
    json_decref(j);
}

/* All names that the refusal of a wrong one lists, apart from those that end in `suffix`. */
static void help_names_all(const char *wrong, const char *suffix)
{
    struct outcome known = shell_run("", wrong), help = shell_run("", "plan --help");
    char *names = strstr(known.err, "known are "), *rest;
    assert_non_null(names);
    uint32_t count = 0;
    for (char *n = strtok_r(names + strlen("known are "), ", \n", &rest); n;
         n = strtok_r(NULL, ", \n", &rest)) {
        const char *end = *suffix ? strstr(n, suffix) : NULL;
        if (end && !strcmp(end, suffix))
            continue;
        assert_non_null(strstr(help.out, n));
        count++;
    }
    assert_true(count > 2);
    outcome_finish(&known);
    outcome_finish(&help);
}

/* By price, or the one that is asked for where it takes the pass; --help knows all names. */
static void test_family(void **state)
{
    (void)state;
    check_family("", 0, "cuda_tiled");
    check_family("--family cuda_resident", 0, "cuda_resident");
    check_family("--family cuda_resident", 1, "cuda_tiled");
    shell_says(
        "emit strided -n 390 --dtype bf16 --target sm_90a --family cuda_resident -o family && "
        "grep -c RESIDENT_ROWS family/kernel_config.h",
        "1");
    shell_says("info good.mkb", "forward by cpu_vector, backward by cpu_vector");
    help_names_all("plan dense -n 8 --family x", "");
}

static void test_machine(void **state)
{
    (void)state;
    help_names_all("plan dense -n 8 --machine x", "-mma");
    shell_says("plan dense -n 96 --dtype bf16 --target sm_89 --machine l4-mma",
               "plan for sm_89 on l4-mma:");
    shell_says("plan dense -n 96 --dtype bf16 --target sm_89",
               "plan for sm_89 on rtx4090-mma:");
}

/* bench predicts for dense what dense's own plan reports, and less for a sparse mask. */
static void test_bench_predicts_dense(void **state)
{
    (void)state;
    json_t *j = shell_json(
        "bench dense star -n 256 --heads 2 --dtype f32 --seconds 0.01 --pass forward --json",
        0);
    const json_t *list = json_object_get(j, "results");
    double predicted[2], dense[2];
    assert_int_equal(json_array_size(list), 2);
    for (size_t k = 0; k < 2; k++) {
        const json_t *r = json_array_get(list, k);
        predicted[k] = json_number_value(json_object_get(r, "predicted_s"));
        dense[k] = json_number_value(json_object_get(r, "dense_predicted_s"));
    }
    assert_true(predicted[0] > 0 && predicted[0] == dense[0] && dense[1] == dense[0]);
    assert_true(predicted[1] < predicted[0]);
    json_decref(j);
}

/* f16, f32 and f64 inputs, ragged, packed; what stands behind the outputs is checked by verify. */
static void test_run(void **state)
{
    (void)state;
    static const char *const outputs[] = {"out", "lse", "dq", "dk", "dv"};
    shell_says("run good.mkb --query q.npy --key q.npy --value q.npy --grad q.npy -o a/b", "");
    shell_says("run good.mkb --query q16.npy --key q64.npy --value q64.npy --grad q16.npy -o c",
               "");
    shell_says("run good.mkb --query packed.npy --key packed.npy --value packed.npy "
               "--offsets offsets.npy -o d",
               "");
    shell_says("run good.mkb --query q.npy --key q.npy --value q.npy --lengths length.npy -o e",
               "");
    for (int k = 0; k < 5; k++) {
        char path[32];
        size_t size, same;
        snprintf(path, sizeof path, "a/b/%s.npy", outputs[k]);
        uint8_t *a = fixture_read(path, &size);
        snprintf(path, sizeof path, "c/%s.npy", outputs[k]);
        uint8_t *c = fixture_read(path, &same);
        assert_int_equal(size, same);
        assert_memory_equal(a, c, size);
        free(a);
        free(c);
    }
    /* The first sequence of the packed batch is the ragged one, and beyond its length there is 0. */
    size_t size;
    uint8_t *d = fixture_read("d/out.npy", &size), *e = fixture_read("e/out.npy", &size);
    size_t row = 16 * sizeof(float), data = size - 32 * row;
    assert_memory_equal(d + data, e + data, 20 * row);
    for (size_t k = 20 * row; k < 32 * row; k++)
        assert_int_equal(e[data + k], 0);
    free(d);
    free(e);
}

/* The gradient of the bias, whole and along diagonals: the same sums. */
static void test_bias(void **state)
{
    (void)state;
    enum { N = 32 };
    const char *line = "run soft.mkb --query q.npy --key q.npy --value q.npy --grad q.npy "
                       "--soft soft.npy -o soft";
    char diagonals[200];
    size_t size;
    snprintf(diagonals, sizeof diagonals, "%s-lines --diagonals", line);
    shell_says(line, "");
    shell_says(diagonals, "");
    shell_says("info soft.mkb", "soft mask: scale");
    shell_says("verify soft.mkb", "whole mask: dsoft by diagonals");
    shell_says("bench soft.mkb --seconds 0.1 --threads 1 --clock cpu", "of hard");
    uint8_t *a = fixture_read("soft/dsoft.npy", &size);
    const float *whole = (const float *)(const void *)(a + size - sizeof(float) * N * N);
    uint8_t *b = fixture_read("soft-lines/dsoft.npy", &size);
    const float *lines = (const float *)(const void *)(b + size - sizeof(float) * (2 * N - 1));
    float largest = 0;
    for (int o = -(N - 1); o < N; o++) {
        float sum = 0;
        for (int i = 0; i < N; i++)
            sum += i + o >= 0 && i + o < N ? whole[i * N + i + o] : 0;
        float off = sum - lines[o + N - 1], size_of = sum < 0 ? -sum : sum;
        assert_true(off < 1e-5f && off > -1e-5f);
        largest = size_of > largest ? size_of : largest;
    }
    assert_true(largest > 1e-3f);
    free(a);
    free(b);
}

/* A wrong kernel is reported. The wrong one comes from templates whose Philox has another
   constant: what does not drop out still holds. */
static void test_wrong_kernel(void **state)
{
    (void)state;
    struct outcome o = shell_run(NULL, "emit star -n 32 --dropout -o wrong");
    assert_int_equal(o.code, 0);
    outcome_finish(&o);
    assert_int_equal(system("grep -qi 0xD2511F53 wrong/philox.h && "
                            "sed -i s/0xD2511F53/0xD2511F55/I wrong/philox.h"),
                     0);
    o = shell_run("MASKC_TEMPLATES=wrong", "compile star -n 32 --dropout -o wrong.mkb");
    assert_int_equal(o.code, 0);
    outcome_finish(&o);
    o = shell_run(NULL, "verify wrong.mkb");
    assert_int_equal(o.code, 1);
    assert_non_null(strstr(o.err, "checks failed"));
    assert_non_null(strstr(o.out, "FAILED"));
    outcome_finish(&o);
    json_t *j = shell_json("verify wrong.mkb --json", 1);
    const json_t *check, *checks = json_object_get(j, "checks");
    size_t k;
    assert_true(json_is_false(json_object_get(j, "ok")));
    json_array_foreach(checks, k, check)
    {
        /* lse comes before the dropout */
        const char *name = json_string_value(json_object_get(check, "name"));
        bool dropped = !strncmp(name, "dropout", 7) && !strstr(name, ": lse");
        assert_int_equal(json_is_true(json_object_get(check, "ok")), !dropped);
    }
    json_decref(j);
}

static void test_emit(void **state)
{
    (void)state;
    size_t size;
    struct outcome o =
        shell_run("MASKC_CC=", "emit star -n 64 --target x86-64-v2 -o \"what's emitted\"");
    assert_int_equal(o.code, 0);
    /* The last line is the command that compiles it: it must work where it is typed. */
    char *command = strstr(o.out, "cd 'what'\\''s emitted' && ");
    assert_non_null(command);
    command[strcspn(command, "\n")] = 0;
    assert_int_equal(system(command), 0);
    outcome_finish(&o);
    free(fixture_read("what's emitted/kernel_config.h", &size));
    free(fixture_read("what's emitted/plan.txt", &size));
    free(fixture_read("what's emitted/tables.safetensors", &size));
}

static void test_cache(void **state)
{
    (void)state;
    shell_says("cache list", "entr");
    shell_says("cache clear", "removed");
    shell_says("cache list", "0 entries");
    for (int k = 0; k < 2; k++) {
        struct outcome o = shell_run("HOME= XDG_CACHE_HOME=", k ? "cache clear" : "cache list");
        assert_int_equal(o.code, 0);
        assert_non_null(strstr(o.out, "no cache folder"));
        outcome_finish(&o);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help),         cmocka_unit_test(test_help_titles_once),
        cmocka_unit_test(test_json),         cmocka_unit_test(test_family),
        cmocka_unit_test(test_machine),      cmocka_unit_test(test_bench_predicts_dense),
        cmocka_unit_test(test_run),          cmocka_unit_test(test_emit),
        cmocka_unit_test(test_cache),        cmocka_unit_test(test_bias),
        cmocka_unit_test(test_wrong_kernel),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: cli_test MASKC\n");
        return 2;
    }
    shell_start(argv[1]);
    shell_compile_fast();
    int failed = cmocka_run_group_tests_name("cli", tests, fixtures_set_up, NULL);
    shell_stop();
    return failed;
}
