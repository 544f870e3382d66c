/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of maskbert that read and write a model's folder, as a person runs them; usage:
   commands_test MASKBERT encoder|none. What fails prints one line and leaves nothing behind. */
#include "tests/cli/shell.h"
#include "tests/model/commands_failures.h"
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void run(const char *prefix, const char *line, const char *expected)
{
    struct outcome o = shell_must(prefix, line);
    if (expected && strcmp(o.out, expected))
        fail_msg("maskbert %s: '%s', expected '%s'", line, o.out, expected);
    outcome_finish(&o);
}

static json_t *info(const char *folder)
{
    char line[100];
    snprintf(line, sizeof line, "info %s --json", folder);
    struct outcome o = shell_must(NULL, line);
    json_t *json = json_loads(o.out, 0, NULL);
    assert_non_null(json);
    outcome_finish(&o);
    return json;
}

/* text -> vocabulary -> model -> converted model -> numbers. */
static void from_text_to_a_model(void **state)
{
    (void)state;
    run(TEXT, "vocab --size 13 -o vocab.txt", "");
    run(TEXT, "vocab --size 13 --min-frequency 1 -o rare.txt", ""); /* "ba" is there once */
    assert_int_equal(system("grep -qx ba rare.txt && ! grep -qx ba vocab.txt && rm rare.txt"),
                     0);
    run(NULL, "init --size 2x16x4 --vocab vocab.txt --positions 32 --seed 5 -o made", "");
    run(NULL, "init --size 2x16x4 --vocab vocab.txt --positions 32 --seed 5 -o twin", "");
    assert_int_equal(system("cmp -s made/model.safetensors twin/model.safetensors"), 0);
    run(NULL,
        "init --size 2x16x4 --vocab vocab.txt --positions 32 --seed 5 --start mimetic -o near",
        "");
    assert_int_not_equal(system("cmp -s made/model.safetensors near/model.safetensors"), 0);
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
    assert_true(fabs(json_number_value(json_object_get(mask, "sparsity")) -
                     100 * (1 - (64 * 7 - 12) / 4096.)) <
                1e-9); /* seven a row, but at the corners */
    assert_true(json_is_false(json_object_get(mask, "changed")));
    assert_int_equal(json_array_size(parts), 3);
    json_decref(wide);
    assert_int_equal(system("mkdir other && touch other/modules.json"), 0);
    run(NULL, "convert wide -o again", "");
    run(NULL, "convert wide -o again", "");
    assert_int_equal(system("cmp -s wide/model.safetensors again/model.safetensors && "
                            "cmp -s wide/config.json again/config.json && "
                            "cmp -s wide/mask.mask again/mask.mask"),
                     0);
}

/* Somebody edits the mask; somebody breaks it. */
static void a_stored_mask_is_looked_at(void **state)
{
    (void)state;
    run(NULL, "convert made -o edited --mask 'window(3)'", "");
    assert_int_equal(system("echo 'window(4)' > edited/mask.mask"), 0);
    json_t *json = info("edited");
    assert_true(json_is_true(json_object_get(json_object_get(json, "mask"), "changed")));
    json_decref(json);
    assert_int_equal(system("echo 'window(' > edited/mask.mask"), 0);
    struct outcome o = shell_run(NULL, "info edited");
    assert_int_equal(o.code, 2);
    assert_non_null(strstr(o.err, "maskbert: edited/mask.mask:2:1: "));
    assert_string_equal(o.out, "");
    outcome_finish(&o);
    assert_int_equal(system("rm edited/mask.mask"), 0);
    o = shell_run(NULL, "info edited");
    assert_int_equal(o.code, 2);
    assert_non_null(strstr(o.err, "edited/mask.mask: missing, but config.json names it"));
    outcome_finish(&o);
    assert_int_equal(
        system("sed -i 's/\"mask\": *\"mask.mask\"/&, \"layers\": [1]/' edited/config.json"),
        0);
    o = shell_run(NULL, "info edited");
    assert_int_equal(o.code, 2);
    assert_non_null(strstr(o.err, "maskc.layers: a mask of some layers is not supported"));
    outcome_finish(&o);
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

/* Latin-1 is accepted and counted; other formats are refused before anything is printed. */
static void text_is_utf8(void **state)
{
    (void)state;
    struct outcome o = shell_must("printf 'ab\\nb\\351\\n' | ", "tokenize made");
    assert_string_equal(o.out, "2 10 3\n2 6 3\n");
    assert_string_equal(o.err, "maskbert: stdin: 1 byte is not UTF-8 and was replaced, the "
                               "first one in line 2\n");
    outcome_finish(&o);
    o = shell_run("printf 'ab b\\n' | gzip -c | ", "tokenize made");
    assert_int_equal(o.code, 2);
    assert_string_equal(o.err, "maskbert: stdin: is gzip; text in UTF-8 is expected\n");
    assert_string_equal(o.out, "");
    outcome_finish(&o);
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

/* ---- what runs a model ---- */

#define LINES "printf 'ab b\\n\\nab ba\\tb\\n' | "

/* Lines of a .jsonl are arrays of 16 numbers. */
static void vectors_of_lines(void **state)
{
    (void)state;
    run(LINES, "embed made -o vectors.jsonl --normalize", "");
    run(LINES, "embed made -o twin.jsonl --normalize --threads 1 --batch-tokens 1", "");
    FILE *file = fopen("vectors.jsonl", "r"), *twin = fopen("twin.jsonl", "r");
    for (int k = 0; k < 3; k++) {
        json_t *line = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL);
        json_t *other = json_loadf(twin, JSON_DISABLE_EOF_CHECK, NULL);
        double squares = 0;
        assert_int_equal(json_array_size(line), 16);
        for (size_t i = 0; i < 16; i++) {
            double x = json_real_value(json_array_get(line, i));
            assert_true(fabs(x - json_real_value(json_array_get(other, i))) < 1e-6);
            squares += x * x;
        }
        assert_true(fabs(squares - 1) < 1e-5);
        json_decref(line);
        json_decref(other);
    }
    fclose(file);
    fclose(twin);
    run(LINES, "embed made -o states.npy --pooling none --dtype bf16", "");
    assert_int_equal(system("head -c 128 states.npy | grep -q \"'shape': (3, 7, 16)\""), 0);
    run("printf '' | ", "embed made -o nothing.npy", "");
    assert_int_equal(system("head -c 128 nothing.npy | grep -q \"'shape': (0, 16)\""), 0);
    run("printf 'b b b b b b b b\\n' | ", "embed made -o cut.npy --max-length 4", "");
    run("{ echo b; yes b | head -5000 | tr '\\n' ' '; } | ",
        "embed made -o long.npy --pooling none", "");
    assert_int_equal(system("head -c 128 long.npy | grep -q \"'shape': (2, 32, 16)\""), 0);
}

/* A mask array with fewer tokens than positions: the message names both and the command that helps. */
static void short_masks_are_explained(void **state)
{
    (void)state;
    const char error[] = "short.npy: the mask has 1 tokens, the model 32 positions; `maskbert "
                         "convert DIR -o NEW "
                         "--positions 1` makes a model with as many\n";
    assert_int_equal(system("printf '\\223NUMPY\\1\\0v\\0%-117s\\n\\1' \"{'descr': '|b1', "
                            "'fortran_order': False, 'shape': (1, 1), }\" > short.npy"),
                     0);
    struct outcome o = shell_run(NULL, "convert made -o new --mask short.npy");
    assert_int_equal(o.code, 2);
    assert_non_null(strstr(o.err, error));
    outcome_finish(&o);
    assert_int_equal(remove("short.npy"), 0);
}

/* The first two numbers of the only line of x.jsonl, which has `size` of them. */
static void read_vector(const char *line, size_t size, double ret[2])
{
    run("printf 'b\\n' | ", line, "");
    json_t *json = json_load_file("x.jsonl", 0, NULL);
    assert_int_equal(json_array_size(json), size);
    for (size_t k = 0; k < 2; k++)
        ret[k] = json_real_value(json_array_get(json, k));
    json_decref(json);
}

/* A folder as sentence-transformers 6.2 saves it: its prompt is text, its truncate_dim cuts. */
static void a_folder_of_sentences(void **state)
{
    (void)state;
    double own[2], plain[2], named[2];
    const char files[] =
        "cp -r made sent && mkdir sent/1_P && cd sent && S=sentence_transformers && printf "
        "'[{\"path\":\"\",\"type\":\"'$S'.base.modules.transformer.Transformer\"},{\"path\":"
        "\"1_P\",\"type\":\"'$S'.sentence_transformer.modules.pooling.Pooling\"}]' > "
        "modules.json && printf '{\"pooling_mode\":\"cls\"}' > 1_P/config.json && printf "
        "'{\"prompts\":{\"x\":\"ab \",\"y\":\"\"},\"default_prompt_name\":\"x\","
        "\"truncate_dim\":5}' > config_sentence_transformers.json";
    assert_int_equal(system(files), 0);
    read_vector("embed sent -o x.jsonl", 5, own);
    read_vector("embed sent -o x.jsonl --prompt-name y", 5, named);
    read_vector("embed made -o x.jsonl --pooling cls --prompt 'ab '", 16, plain);
    assert_true(fabs(own[0] - plain[0]) < 1e-6 && fabs(own[1] - plain[1]) < 1e-6);
    assert_true(fabs(own[0] - named[0]) > 1e-4);
    assert_int_equal(system("printf '{\"pooling_mode\":\"median\"}' > sent/1_P/config.json"),
                     0);
    struct outcome o = shell_run("printf 'b\\n' | ", "embed sent -o y.jsonl");
    assert_int_equal(o.code, 2);
    assert_non_null(strstr(o.err, "pooling_mode 'median': cls, max"));
    outcome_finish(&o);
    run("printf 'b [MASK]\\n' | ", "fill-mask sent --json > filled", NULL);
}

static void masked_words_and_next_sentences(void **state)
{
    (void)state;
    json_t *fill = shell_json_of("printf 'ab [MASK] b\\n' | ", "fill-mask made --top 3 --json");
    json_t *gap = json_array_get(json_object_get(fill, "masks"), 0);
    assert_int_equal(json_integer_value(json_object_get(gap, "token")), 2);
    assert_int_equal(json_array_size(json_object_get(gap, "words")), 3);
    json_decref(fill);
    json_t *next = shell_json_of("printf 'ab\\tb\\n' | ", "classify made --json");
    double p = json_real_value(json_object_get(next, "probability"));
    assert_true(p >= 0.5 && p <= 1);
    json_decref(next);
    assert_int_equal(system("cp -r made named && printf '{\"mask_token\": \"<mask>\"}' > "
                            "named/tokenizer_config.json && sed -i 's/^\\[MASK\\]$/<mask>/' "
                            "named/vocab.txt"),
                     0);
    struct outcome o = shell_must("printf 'ab [MASK] b\\n' | ", "fill-mask named");
    assert_string_equal(o.err, "maskbert: no line has a <mask>: nothing to fill\n");
    outcome_finish(&o);
    o = shell_must("printf 'b b [MASK]\\nb [MASK] b\\n' | ", "fill-mask made --max-length 4");
    assert_non_null(strstr(o.err, "maskbert: the cut removed 1 of 2 [MASK]\n"));
    outcome_finish(&o);
    o = shell_must("printf 'b b [MASK]\\n' | ", "fill-mask made --max-length 4");
    assert_non_null(strstr(o.err, "the cut removed 1 of 1 [MASK]: nothing to fill\n"));
    outcome_finish(&o);
}

/* The same words on a device; where there is none, one line says so. */
static void devices_print_the_same(void **state)
{
    (void)state;
    const char *line = "printf 'ab [MASK] b\\nb\\n' | ";
    struct outcome cpu = shell_must(line, "fill-mask made --top 3");
    run(line, "fill-mask made --top 3 --device emulated", cpu.out);
    outcome_finish(&cpu);
    struct outcome o = shell_run(NULL, "embed made -o x.npy --device cuda:99");
    assert_int_equal(o.code, 3);
    assert_ptr_equal(strchr(o.err, '\n'), o.err + strlen(o.err) - 1);
    outcome_finish(&o);
}

/* The model's own mask: window(3), sparsegen. A query of seven tokens sees 4 to 7 keys at most. */
static void maps_and_their_support(void **state)
{
    (void)state;
    json_t *maps =
        shell_json_of("printf 'ab b ab b ab\\n' | ", "attention wide --json --layer 1");
    json_t *heads = json_object_get(maps, "heads");
    assert_int_equal(json_array_size(json_object_get(maps, "tokens")), 7);
    assert_int_equal(json_array_size(heads), 4);
    for (size_t h = 0; h < 4; h++) {
        json_t *support = json_object_get(json_array_get(heads, h), "support");
        assert_int_equal(json_array_size(support), 7);
        for (int i = 0; i < 7; i++) {
            int keys = (int)json_integer_value(json_array_get(support, (size_t)i));
            int most = 1 + (i < 3 ? i : 3) + (6 - i < 3 ? 6 - i : 3);
            assert_in_range(keys, 1, most);
        }
    }
    json_decref(maps);
}

static void bench_on(const char *line, const char *device)
{
    json_t *bench = shell_json_of(NULL, line);
    assert_string_equal(json_string_value(json_object_get(bench, "device")), device);
    assert_int_equal(json_array_size(json_object_get(bench, "results")), 2);
    assert_true(json_real_value(json_object_get(bench, "ceiling")) > 1);
    assert_true(json_real_value(json_object_get(bench, "speedup")) > 0);
    const double share = json_real_value(json_object_get(bench, "cpu_share"));
    assert_true(share > 0 && share <= 1);
    assert_int_equal(json_is_true(json_object_get(bench, "busy")), share < 0.8);
    json_decref(bench);
}

static void bench_measures_both(void **state)
{
    (void)state;
    bench_on("bench wide --batch 2 -n 8 --seconds 0.05 --json", "cpu");
    bench_on("bench wide --batch 2 -n 8 --seconds 0.05 --json --device emulated", "emulated");
}

int main(int count, char **argument)
{
    const struct CMUnitTest files[] = {
        cmocka_unit_test(from_text_to_a_model),
        cmocka_unit_test(a_stored_mask_is_looked_at),
        cmocka_unit_test(short_masks_are_explained),
        cmocka_unit_test(tokenize_prints_a_line_for_each),
        cmocka_unit_test(text_is_utf8),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(a_full_disk_leaves_nothing),
    };
    const struct CMUnitTest encoder[] = {
        cmocka_unit_test(vectors_of_lines),
        cmocka_unit_test(a_folder_of_sentences),
        cmocka_unit_test(masked_words_and_next_sentences),
        cmocka_unit_test(devices_print_the_same),
        cmocka_unit_test(maps_and_their_support),
        cmocka_unit_test(bench_measures_both),
        cmocka_unit_test(failures_say_one_line),
    };
    if (count != 3)
        return 2;
    shell_start(argument[1]);
    shell_compile_fast();
    int failed = cmocka_run_group_tests(files, NULL, NULL);
    if (!strcmp(argument[2], "encoder")) /* else the build has no oneDNN */
        failed |= cmocka_run_group_tests(encoder, NULL, NULL);
    shell_stop();
    return failed;
}
