/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of maskbert that read and write a model's folder, as a person runs them; usage:
   commands_test MASKBERT. What fails prints one line and leaves nothing behind. */
#include "tests/cli/shell.h"
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct outcome must(const char *prefix, const char *line)
{
    struct outcome o = shell_run(prefix, line);
    if (o.code)
        fail_msg("maskbert %s: exit code %d: %s", line, o.code, o.err);
    return o;
}

static void run(const char *prefix, const char *line, const char *expected)
{
    struct outcome o = must(prefix, line);
    if (expected && strcmp(o.out, expected))
        fail_msg("maskbert %s: '%s', expected '%s'", line, o.out, expected);
    outcome_finish(&o);
}

static json_t *info(const char *folder)
{
    char line[100];
    snprintf(line, sizeof line, "info %s --json", folder);
    struct outcome o = must(NULL, line);
    json_t *json = json_loads(o.out, 0, NULL);
    assert_non_null(json);
    outcome_finish(&o);
    return json;
}

#define TEXT "printf 'ab ab ab ba\\n\\nab cab\\n' | "

/* text -> vocabulary -> model -> converted model -> numbers. */
static void from_text_to_a_model(void **state)
{
    (void)state;
    run(TEXT, "vocab --size 13 -o vocab.txt", "");
    run(NULL, "init --size 2x16x4 --vocab vocab.txt --positions 32 --seed 5 -o made", "");
    run(NULL, "init --size 2x16x4 --vocab vocab.txt --positions 32 --seed 5 -o twin", "");
    assert_int_equal(system("cmp -s made/model.safetensors twin/model.safetensors"), 0);
    run(NULL,
        "convert made -o wide --positions 64 --dtype bf16 --mask 'window(3)' --transform "
        "sparsegen=-4",
        "");
    json_t *wide = info("wide");
    assert_int_equal(json_integer_value(json_object_get(wide, "positions")), 64);
    assert_string_equal(json_string_value(json_object_get(wide, "dtype")), "BF16");
    json_t *mask = json_object_get(wide, "mask"), *parts = json_object_get(wide, "parts");
    assert_string_equal(json_string_value(json_object_get(mask, "file")), "mask.mask");
    assert_string_equal(json_string_value(json_object_get(mask, "transform")), "sparsegen=-4");
    assert_int_equal(json_array_size(parts), 3);
    json_decref(wide);
    run(NULL, "convert wide -o again", "");
    assert_int_equal(system("cmp -s wide/model.safetensors again/model.safetensors && "
                            "cmp -s wide/config.json again/config.json && "
                            "cmp -s wide/mask.mask again/mask.mask"),
                     0);
}

static void tokenize_prints_a_line_for_each(void **state)
{
    (void)state;
    run("printf 'ab b\\n\\nab\\tb\\nx\\r' | ", "tokenize made",
        "2 10 6 3\n2 3\n2 10 3 6 3\n2 1 3\n");
    run("printf 'ab b\\n' | ", "tokenize made --offsets --threads 1",
        "2:0-0 10:0-2 6:3-4 3:0-0\n");
    run("printf 'ab b ab b\\n' | ", "tokenize made --max-length 4", "2 10 6 3\n");
    run("printf 'ab\\tb' | ", "tokenize made --json",
        "{\"ids\":[2,10,3,6,3],\"tokens\":[\"[CLS]\",\"ab\",\"[SEP]\",\"b\",\"[SEP]\"],"
        "\"types\":[0,0,0,1,1],\"offsets\":[[0,0],[0,2],[0,0],[0,1],[0,0]]}\n");
    run("true | ", "tokenize made", "");
    run("printf 'b[MASK]\\n' | ", "tokenize made --tokenizer-compat google", "2 6 1 1 1 3\n");
}

/* Many lines, one thread or several: the same bytes in the same order. */
static void threads_change_nothing(void **state)
{
    (void)state;
    char lines[] = "seq 1 60000 | sed 's/$/ ab ba b/' | ";
    run(lines, "tokenize made --threads 1 > one", "");
    run(lines, "tokenize made --threads 4 > four", "");
    assert_int_equal(system("cmp -s one four && test $(wc -l < one) = 60000"), 0);
}

static const struct {
    const char *prefix, *line;
    int code;
    const char *error;
} failures[] = {
    {NULL, "fly", 2, "maskbert: 'fly' is not a command; maskbert alone lists them\n"},
    {NULL, "info nowhere", 2, "maskbert: nowhere/config.json: No such file or directory\n"},
    {NULL, "tokenize nowhere", 2, "maskbert: nowhere: no tokenizer.json and no vocab.txt\n"},
    {NULL, "tokenize made --max-length 2", 2,
     "maskbert: --max-length 2: at least 3 is expected\n"},
    {NULL, "tokenize made --tokenizer-compat x", 2,
     "maskbert: --tokenizer-compat x: hf or google is expected\n"},
    {NULL, "convert made", 2, "maskbert: convert: -o DIR is expected\n"},
    {NULL, "convert made -o ./made/", 2,
     "maskbert: ./made/: a folder other than the model's is expected\n"},
    {NULL, "convert made -o new --dtype int8", 2,
     "maskbert: --dtype int8: f32, bf16 or f16 is expected\n"},
    {NULL, "convert made -o new --transform softmax", 2,
     "maskbert: --transform is stored with a mask: --mask is expected\n"},
    {NULL, "convert wide -o new --positions 16", 2,
     "maskbert: wide has a mask: with --positions, --mask is expected\n"},
    {NULL, "convert made -o new --mask blockbert-2", 2,
     "maskbert: the mask has 12 heads, the model 4; 1 or as many are expected\n"},
    {NULL, "init --size huge -o new", 2,
     "maskbert: --size huge: tiny, mini, small, medium, base, large or LxHxA is expected\n"},
    {NULL, "init --size 2x10x3 -o new", 2,
     "maskbert: init: hidden_size 10 is no multiple of num_attention_heads 3\n"},
    {TEXT, "vocab --size 9 -o new", 2,
     "maskbert: 9 tokens do not hold the text's characters: at least 10 are expected\n"},
    {"true | ", "vocab --size 9 -o new", 2, "maskbert: the text has no words\n"},
};

static void failures_say_one_line(void **state)
{
    (void)state;
    char *before = shell_listing();
    for (size_t k = 0; k < sizeof failures / sizeof *failures; k++) {
        struct outcome o = shell_run(failures[k].prefix, failures[k].line);
        if (o.code != failures[k].code || strcmp(o.err, failures[k].error) || *o.out)
            fail_msg("maskbert %s: %d '%s'", failures[k].line, o.code, o.err);
        outcome_finish(&o);
    }
    char *after = shell_listing();
    assert_string_equal(before, after);
    free(before);
    free(after);
}

int main(int count, char **argument)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_text_to_a_model),
        cmocka_unit_test(tokenize_prints_a_line_for_each),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(failures_say_one_line),
    };
    if (count != 2)
        return 2;
    shell_start(argument[1]);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shell_stop();
    return failed;
}
