/* SPDX-License-Identifier: Apache-2.0 */
/* Are gate values of DuoAttention read as its own code reads them: which heads are full, what the others see, for groups of
   query heads too? Is every other text refused in one line? */
#include "masks/readers/duo.h"
#include "tests/masks/help.h"
#include "tests/support/locale/comma_locale.h"
#include <stdlib.h>
#include <string.h>

static const char config[] =
    "{\"model_name\": \"x\", \"sink_size\": 3, \"recent_size\": 5, \"deploy_sink_size\": null}";

static const char *write_files(const char *tsv, const char *json)
{
    write_bytes(test_path("config.json"), json, strlen(json));
    const char *path = test_path("full_attention_heads.tsv");
    write_bytes(path, tsv, strlen(tsv));
    return path;
}

/* Values as numpy.savetxt writes them; those beyond 0..1 are clipped. */
static const char four[] =
    "-9.584426879882812500e-05\t5.585937500000000000e-01\t1.000000000000000000e+00\n"
    "5.000000000000000000e-01\t4.999999000000000000e-01\t1.250000000000000000e+00\n";

/* full: a digit for each layer and head. */
static void check(struct mask_request r, const char *full)
{
    struct mask *m = load(r);
    assert_int_equal(m->layers * m->heads, strlen(full));
    for (uint32_t k = 0; full[k]; k++)
        for (uint32_t i = 0; i < m->n; i++)
            for (uint32_t j = 0; j < m->n; j++)
                assert_int_equal(
                    pattern_test(mask_pattern(m, k / m->heads, k % m->heads), i, j),
                    j <= i && (full[k] == '1' || j < 3 || i - j < 5));
    mask_destroy(m);
}

static void heads_are_those_of_duoattention(void **unused)
{
    (void)unused;
    const char *path = write_files(four, config);
    const struct mask_request plain = {MASK_REQUEST_DEFAULTS, .name = path, .n = 40};
    static const struct {
        bool keep;
        double value;
        const char *full;
    } cases[] = {
        {false, 0.5, "011101"},      {false, 0.5001, "011001"}, {false, 0, "111111"},
        {false, 1, "001001"},        {false, 1.01, "000000"},   {true, 100, "111111"},
        {true, 0, "000000"},         {true, 50, "011001"},      {true, 99.9, "011111"},
        {true, 100 / 3.0, "001001"}, /* quantile 2/3 lies between the 4th and the 5th */
        {true, 20, "001001"}, /* it is the 5th of 6 values, of which the last two are equal */
        {true, 19, "000001"}, /* of equal values the later one is larger */
    };
    check(plain, "011101");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct mask_request r = plain;
        *(cases[k].keep ? &r.has_keep : &r.has_threshold) = true;
        *(cases[k].keep ? &r.keep : &r.threshold) = cases[k].value;
        check(r, cases[k].full);
    }
}

static void query_heads_share_the_mask_of_their_group(void **unused)
{
    (void)unused;
    const char *path = write_files(four, config);
    check((struct mask_request){MASK_REQUEST_DEFAULTS, .name = path, .n = 17, .heads = 6},
          "001111110011");
    check((struct mask_request){.name = path, .n = 17, .layer = 1}, "101");
    struct text line = {0};
    text_add(&line, "%s: --heads 4: a multiple of the file's 3 heads is expected", path);
    refuse((struct mask_request){MASK_REQUEST_DEFAULTS, .name = path, .n = 17, .heads = 4},
           text_get(&line));
    text_finish(&line);
}

static void sizes_of_any_kind_are_right(void **unused)
{
    (void)unused;
    static const struct {
        const char *json;
        uint32_t sink, recent;
    } cases[] = {{"{\"sink_size\": 0, \"recent_size\": 2}", 0, 2},
                 {"{\"sink_size\": 2, \"recent_size\": 0}", 2, 0},
                 {"{\"sink_size\": 0, \"recent_size\": 0}", 0, 0},
                 {"{\"sink_size\": 2147483647, \"recent_size\": 2147483647}", 20, 20},
                 {"{\"sink_size\": 5, \"recent_size\": 15}", 5, 15}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *path = write_files("0\t1\r\n\r\n0.2\t0.8", cases[k].json);
        struct mask *m =
            load((struct mask_request){MASK_REQUEST_DEFAULTS, .name = path, .n = 20});
        assert_true(m->layers == 2 && m->heads == 2);
        for (uint32_t i = 0; i < 20; i++)
            for (uint32_t j = 0; j < 20; j++) {
                const bool near = j < cases[k].sink || i - j < cases[k].recent;
                assert_int_equal(pattern_test(mask_pattern(m, 0, 0), i, j), j <= i && near);
                assert_int_equal(pattern_test(mask_pattern(m, 1, 1), i, j), j <= i);
            }
        mask_destroy(m);
    }
}

static void other_files_are_refused_in_one_line(void **unused)
{
    (void)unused;
    static const char *const texts[] = {
        "",        "\n\n",     "0\t\n",   "0 1\n",    "0\t1\n2\n", "nan\t1\n",  "0x1\n",
        "1e999\n", "1\t\t2\n", "a\n",     "0,1\n",    "\t0\n",     "0\n# x\n",  "1\r2\n",
        "1-2\n",   "inf\n",    "1e5e5\n", "0\t1\n\t", "+\n",       "0\n0\x01\n"};
    static const char *const configs[] = {"",
                                          "{}",
                                          "[]",
                                          "{\"sink_size\": 1}",
                                          "{\"sink_size\": -1, \"recent_size\": 1}",
                                          "{\"sink_size\": 1.5, \"recent_size\": 1}",
                                          "{\"sink_size\": 1, \"recent_size\": \"1\"}",
                                          "{\"sink_size\": 1, \"recent_size\": 2147483648}"};
    struct duo g = {0};
    for (size_t k = 0; k < sizeof texts / sizeof *texts + sizeof configs / sizeof *configs;
         k++) {
        struct error e = {0};
        const bool first = k < sizeof texts / sizeof *texts;
        const char *text = first ? texts[k] : configs[k - sizeof texts / sizeof *texts];
        const int r = (first ? duo_parse : duo_parse_config)(text, strlen(text), "T", &g, &e);
        if (r == 0)
            fail_msg("'%s' is accepted", text);
        assert_int_equal(e.kind, ERROR_INPUT);
        assert_true(!strncmp(e.text, "T:", 2) && !strchr(e.text, '\n'));
        assert_null(g.value);
    }
    struct error e = {0};
    assert_int_equal(duo_parse("0\t1\n2\t3 \n", 9, "T", &g, &e), -1);
    assert_string_equal(e.text, "T:2:4: numbers between tabs are expected");
    assert_int_equal(duo_parse("0\t1\n\n2\n", 7, "T", &g, &e), -1);
    assert_string_equal(e.text, "T:3:1: 1 numbers, 2 are expected");
    assert_int_equal(duo_parse("0\t1\0\n", 5, "T", &g, &e), -1);
    char *wide = memory_new(2 * MASK_MAX_HEADS + 3, 1);
    for (uint32_t k = 0; k <= MASK_MAX_HEADS; k++)
        memcpy(wide + 2 * k, "1\t", 3);
    wide[2 * MASK_MAX_HEADS + 1] = '\n';
    assert_int_equal(duo_parse(wide, strlen(wide), "T", &g, &e), -1);
    free(wide);
}

static void requests_are_refused_in_one_line(void **unused)
{
    (void)unused;
    const char *path = write_files(four, config);
    struct mask_request r = {MASK_REQUEST_DEFAULTS, .name = path};
    struct text line = {0};
    text_add(&line, "%s: the mask has no length of its own, -n N is expected", path);
    refuse(r, text_get(&line));
    text_finish(&line);
    r.n = 8;
    r.has_keep = r.has_threshold = true;
    text_add(&line, "%s: --threshold or --keep is expected, not both", path);
    refuse(r, text_get(&line));
    text_finish(&line);
    r.has_threshold = false;
    r.keep = 101;
    refuse(r, "--keep 101 is out of range, a percentage of the heads, 0..100, is expected");
    r.has_keep = false;
    r.dam = true;
    text_add(&line, "%s: --dam is for .npy and .safetensors files", path);
    refuse(r, text_get(&line));
    text_finish(&line);
    refuse((struct mask_request){MASK_REQUEST_DEFAULTS, .name = "no-such.tsv", .n = 8},
           "no-such.tsv: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_those_of_duoattention),
        cmocka_unit_test(query_heads_share_the_mask_of_their_group),
        cmocka_unit_test(sizes_of_any_kind_are_right),
        cmocka_unit_test(other_files_are_refused_in_one_line),
        cmocka_unit_test(requests_are_refused_in_one_line),
    };
    comma_locale(); /* numbers of files and languages have a point in every locale */
    return cmocka_run_group_tests_name("duo", tests, NULL, test_folder_remove);
}
