/* SPDX-License-Identifier: Apache-2.0 */
/* Is a mask in a model's folder planned, compiled and measured for that model: its head dim, heads and dtype, unless
   options say otherwise? */
#include "tests/cli/fixtures.h"
#include "tests/cli/shell.h"
#include "tests/support/test.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char four_heads[] =
    "{\"hidden_size\":96,\"num_attention_heads\":4,\"torch_dtype\":\"float16\"}";
static const char small_heads[] =
    "{\"hidden_size\":96,\"num_attention_heads\":4,\"head_dim\":12}";
static const char odd[] = "{\"hidden_size\":98,\"num_attention_heads\":4}";
static const char huge[] =
    "{\"hidden_size\":96,\"num_attention_heads\":4,\"limit\":1000000000000000019884624838656}";
static const char *const others[] = {
    "{\"name\":\"other\"}",
    "[1,2]",
    "{",
    "",
    "{\"hidden_size\":64}",
    "{\"d_model\":64,\"num_attention_heads\":4}",
};
static const char bf16[] = "{\"dtype\":\"bf16\"}";

/* clang-format off */
static const struct {
    const char *config, *run, *options, *says;
    int head_dim, heads;
    const char *dtype;
} cases[] = {
    {four_heads, NULL, "", "head dim 24, 4 heads, f16 (from r/config.json)", 24, 4, "f16"},
    {four_heads, bf16, "", "head dim 24, 4 heads, bf16 (from r/config.json, r/run.json)", 24, 4, "bf16"},
    {small_heads, NULL, "", "head dim 16, 4 heads (from r/config.json)", 16, 4, "f32"},
    {four_heads, NULL, "--head-dim 32 --dtype f32", "4 heads (from r/config.json)", 32, 4, "f32"},
    {four_heads, bf16, "--head-dim 32 --dtype f32 --heads 2", NULL, 32, 2, "f32"},
    {huge, "[1]", "", "head dim 24, 4 heads (from r/config.json)", 24, 4, "f32"},
    {odd, NULL, "--head-dim 32 --dtype f32", NULL, 32, 12, "f32"},
    {NULL, bf16, "", NULL, 64, 12, "f32"},
};
/* clang-format on */

static void put(const char *path, const char *text)
{
    unlink(path);
    if (text)
        fixture_write(path, text, strlen(text));
}

static int64_t whole(const json_t *j, const char *key)
{
    return json_integer_value(json_object_get(j, key));
}

static void test_plan(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2 * (sizeof cases / sizeof *cases); k++) {
        char line[128];
        put("r/config.json", cases[k / 2].config);
        put("r/run.json", cases[k / 2].run);
        snprintf(line, sizeof line, "plan r/mask.%s %s --json", k % 2 ? "npy" : "mask",
                 cases[k / 2].options);
        json_t *j = shell_json(line, 0);
        const char *model = json_string_value(json_object_get(j, "model"));
        assert_string_equal(model ? model : "-", cases[k / 2].says ? cases[k / 2].says : "-");
        assert_int_equal(whole(j, "head_dim"), cases[k / 2].head_dim);
        assert_int_equal(whole(j, "head_count"), cases[k / 2].heads);
        assert_string_equal(json_string_value(json_object_get(j, "dtype")), cases[k / 2].dtype);
        json_decref(j);
    }
}

static void test_a_config_of_no_model_is_ignored(void **state)
{
    (void)state;
    put("r/run.json", bf16);
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        put("r/config.json", others[k]);
        json_t *j = shell_json("plan r/mask.npy --json", 0);
        assert_null(json_object_get(j, "model"));
        assert_int_equal(whole(j, "head_dim"), 64);
        assert_string_equal(json_string_value(json_object_get(j, "dtype")), "f32");
        json_decref(j);
    }
}

static void test_plan_says_where_from(void **state)
{
    (void)state;
    put("r/config.json", four_heads);
    put("r/run.json", NULL);
    struct outcome o = shell_must("cd r &&", "plan mask.mask");
    assert_int_equal(
        strncmp(o.out, "head dim 24, 4 heads, f16 (from config.json)\nplan for ", 53), 0);
    assert_string_equal(o.err, "");
    outcome_finish(&o);
}

static void test_a_damaged_config_is_refused(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {odd, "r/config.json: hidden_size and num_attention_heads give no head dim"},
        {"{\"hidden_size\":-8,\"num_attention_heads\":4}", "r/config.json: hidden_size and"},
        {"{\"hidden_size\":\"64\",\"num_attention_heads\":4}",
         "r/config.json: hidden_size and"},
        {"{\"num_attention_heads\":4",
         "r/config.json: not a JSON object; --head-dim and --dtype go without it"},
    };
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        put("r/config.json", texts[k][0]);
        struct outcome o = shell_run("", "plan r/mask.mask");
        assert_int_equal(o.code, 2);
        assert_non_null(strstr(o.err, texts[k][1]));
        assert_string_equal(o.out, "");
        outcome_finish(&o);
    }
}

static void test_compile_snap_and_bench(void **state)
{
    (void)state;
    put("r/config.json", four_heads);
    put("r/run.json", NULL);
    struct outcome o = shell_must("", "compile r/mask.npy --dtype f32 -o own.mkb");
    assert_non_null(strstr(o.out, "f32, head dim 24"));
    assert_string_equal(o.err, "maskc: head dim 24 (from r/config.json)\n");
    outcome_finish(&o);
    o = shell_must("", "snap r/mask.npy --budget 0.9 --dtype f32 -o snapped.npy --json");
    assert_non_null(strstr(o.err, "maskc: head dim 24, 4 heads (from r/config.json)\n"));
    outcome_finish(&o);
    json_t *j =
        shell_json("bench r/mask.npy --json --pass forward --dtype f32 --seconds 0.01", 0);
    const json_t *first = json_array_get(json_object_get(j, "results"), 0);
    assert_int_equal(whole(first, "head_dim"), 24);
    assert_int_equal(whole(first, "heads"), 4);
    json_decref(j);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return fprintf(stderr, "usage: model_folder_test MASKC\n"), 2;
    shell_start(argv[1]);
    shell_compile_fast();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_a_config_of_no_model_is_ignored),
        cmocka_unit_test(test_plan_says_where_from),
        cmocka_unit_test(test_a_damaged_config_is_refused),
        cmocka_unit_test(test_compile_snap_and_bench),
    };
    assert_int_equal(mkdir("r", 0777), 0);
    struct outcome o = shell_run("", "make 'window(2)' -n 64 -o r/mask.mask");
    outcome_finish(&o);
    o = shell_run("", "make 'window(2)' -n 64 -o r/mask.npy");
    outcome_finish(&o);
    int failed = cmocka_run_group_tests_name("model folder", tests, NULL, NULL);
    shell_stop();
    return failed;
}
