/* SPDX-License-Identifier: Apache-2.0 */
/* show and make as a person uses them: the papers' numbers from the language and again from the
   dense file of the same mask, the structure found in it, and the way back to text. */
#include "tests/cli/fixtures.h"
#include "tests/cli/shell.h"
#include "tests/support/test.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void run_ok(const char *line)
{
    struct outcome o = shell_run("", line);
    if (o.code != 0)
        fail_msg("maskc %s: exit code %d, %s", line, o.code, o.err);
    outcome_finish(&o);
}

/* The first of "masks" that show --json prints; caller lets go of *ret_all. */
static const json_t *show_json(const char *mask, json_t **ret_all)
{
    char line[256];
    snprintf(line, sizeof line, "show %s --json", mask);
    struct outcome o = shell_run("", line);
    if (o.code != 0)
        fail_msg("maskc %s: exit code %d, %s", line, o.code, o.err);
    json_error_t e;
    *ret_all = json_loads(o.out, 0, &e);
    if (!*ret_all)
        fail_msg("maskc %s: %s", line, e.text);
    outcome_finish(&o);
    return json_array_get(json_object_get(*ret_all, "masks"), 0);
}

static void check_counts(const char *mask, int least, int most, double sparsity)
{
    json_t *all;
    const json_t *m = show_json(mask, &all);
    json_int_t active = json_integer_value(json_object_get(m, "active"));
    double off = json_number_value(json_object_get(m, "sparsity"));
    if (active < least || active > most)
        fail_msg("%s: %lld entries, %d..%d are expected", mask, (long long)active, least, most);
    if (off < sparsity - 0.05 || off > sparsity + 0.05)
        fail_msg("%s: sparsity %g, %g is expected", mask, off, sparsity);
    json_decref(all);
}

/* clang-format off */
static const struct {
    const char *name;
    int least, most;          /* entries at n = 128 */
    double sparsity, without; /* the papers' tables: with the diagonal and without it */
    const char *structure;    /* found in the dense file, joined by ';' */
} papers[] = {
    {"strided", 4852, 4852, 70.4, 71.2, "window 4;stride 4"},
    {"fixed", 4480, 4480, 72.7, 73.4, "local 4;summary 4,1"},
    {"longformer", 1844, 1844, 88.7, 89.5, "window 5;global "},
    {"longformer_cls", 1864, 1864, 88.6, 89.4, "window 5;global 0,1"},
    {"logsparse", 1666, 1666, 89.8, 90.6, "distance 0,1,2,4,8,16,32,64"},
    {"star", 636, 636, 96.1, 96.9, "diagonal 0;ring;global 0"},
    {"bigbird", 1120, 1122, 93.2, 93.9, "window 1;global "},
};
/* clang-format on */

static void check_structure(const char *mask, const char *expected)
{
    json_t *all;
    const json_t *m = show_json(mask, &all);
    char joined[512] = "";
    size_t k;
    json_t *line;
    json_array_foreach(json_object_get(m, "structure"), k, line)
    {
        size_t used = strlen(joined);
        snprintf(joined + used, sizeof joined - used, "%s%s", k ? ";" : "",
                 json_string_value(line));
    }
    if (strncmp(joined, expected, strlen(expected)) != 0)
        fail_msg("%s: structure %s, %s is expected", mask, joined, expected);
    json_decref(all);
}

/* A mask's counts, and its structure where one is printed, from its text and from the array that `make` writes. */
static void check_both(const char *mask, int64_t least, int64_t most, double sparsity,
                       const char *structure)
{
    char shown[300], made[300];
    snprintf(shown, sizeof shown, "'%s' -n 128", mask);
    snprintf(made, sizeof made, "make '%s' -n 128 -o dense.npy", mask);
    run_ok(made);
    const char *const given[] = {shown, "dense.npy"};
    for (int k = 0; k < 2; k++) {
        check_counts(given[k], least, most, sparsity);
        if (structure)
            check_structure(given[k], structure);
    }
}

static void test_papers(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof papers / sizeof *papers; k++) {
        char without[256];
        snprintf(without, sizeof without, "%s - diagonal(0)", papers[k].name);
        check_both(papers[k].name, papers[k].least, papers[k].most, papers[k].sparsity,
                   papers[k].structure);
        check_both(without, papers[k].least - 128, papers[k].most - 128, papers[k].without,
                   NULL);
    }
}

static bool same_file(const char *a, const char *b)
{
    size_t size[2];
    uint8_t *bytes[2] = {fixture_read(a, &size[0]), fixture_read(b, &size[1])};
    bool same = size[0] == size[1] && !memcmp(bytes[0], bytes[1], size[0]);
    free(bytes[0]);
    free(bytes[1]);
    return same;
}

/* dense -> text -> dense, bit for bit, through every writer. */
static void test_round_trip(void **state)
{
    (void)state;
    static const char *const masks[] = {"strided",
                                        "fixed",
                                        "star",
                                        "blockbert-3",
                                        "dam-s-example",
                                        "fairseq-fixed",
                                        "'causal & window(9)'"};
    char line[256];
    for (size_t k = 0; k < sizeof masks / sizeof *masks; k++) {
        snprintf(line, sizeof line, "make %s -n 96 -o one.npy", masks[k]);
        run_ok(line);
        run_ok("make one.npy -o one.mask");
        run_ok("make one.mask -o two.npy");
        assert_true(same_file("one.npy", "two.npy"));
        run_ok("make one.mask -o one.safetensors");
        run_ok("make one.safetensors -o three.npy");
        assert_true(same_file("one.npy", "three.npy"));
    }
}

/* Group counts that show prints as text, and their keys in JSON. */
static void test_groups(void **state)
{
    (void)state;
    struct outcome o = shell_run("", "show blockbert-3 -n 96");
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "\nheads 0-7\n"));
    assert_non_null(strstr(o.out, "blocks 3 shift 2"));
    assert_non_null(strstr(o.out, "empty rows   0"));
    assert_string_equal(o.err, "");
    outcome_finish(&o);
}

static void test_groups_json(void **state)
{
    (void)state;
    json_t *all;
    const json_t *m = show_json("blockbert-3 -n 96", &all);
    assert_int_equal(json_integer_value(json_object_get(all, "distinct")), 3);
    assert_int_equal(json_integer_value(json_object_get(all, "heads")), 12);
    assert_int_equal(json_array_size(json_object_get(m, "heads")), 8);
    const json_t *last = json_array_get(json_object_get(m, "at"), 7);
    assert_int_equal(json_integer_value(json_array_get(last, 0)), 0);
    assert_int_equal(json_integer_value(json_array_get(last, 1)), 7);
    assert_true(json_is_true(json_object_get(m, "symmetric")));
    json_decref(all);
}

/* The entry of this name that gallery --json lists, and its sparsity; -1 stands for null. */
static void check_listed(const char *options, const char *name, double sparsity,
                         const char *arguments)
{
    char line[64];
    snprintf(line, sizeof line, "gallery --json %s", options);
    struct outcome o = shell_run("", line);
    json_t *all = json_loads(o.out, 0, NULL), *entry = NULL, *one;
    size_t k;
    json_array_foreach(json_object_get(all, "gallery"), k, one)
    {
        if (!strcmp(json_string_value(json_object_get(one, "name")), name))
            entry = one;
    }
    const json_t *found = json_object_get(entry, "sparsity");
    char *given = json_dumps(json_object_get(entry, "arguments"), JSON_COMPACT);
    if (o.code || !found ||
        (sparsity < 0 ? !json_is_null(found)
                      : json_number_value(found) < sparsity - 0.05 ||
                            json_number_value(found) > sparsity + 0.05))
        fail_msg("maskc %s: exit code %d, %s, %s", line, o.code, o.out, o.err);
    assert_string_equal(given, arguments);
    free(given);
    json_decref(all);
    outcome_finish(&o);
}

static void test_gallery(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof papers / sizeof *papers; k++)
        if (!strcmp(papers[k].name, "star") || !strcmp(papers[k].name, "logsparse"))
            check_listed("", papers[k].name, papers[k].sparsity, "{}");
    check_listed("", "longformer-cls", 88.6, "{\"w\":5,\"g\":2}");
    check_listed("", "sink", 78.0, "{\"s\":4,\"w\":28}");
    check_listed("", "dam-s-example", 91.4, "{}");
    check_listed("-n 512", "fairseq-fixed", 55.8, "{\"l\":128,\"c\":32}");
    check_listed("-n 1", "longformer-cls", -1, "{\"w\":5,\"g\":2}");
    check_listed("-n 1", "star", 0, "{}");
    struct outcome o = shell_run("", "gallery");
    assert_int_equal(o.code, 0);
    for (char *at = o.out; *at; at += strcspn(at, "\n") + 1)
        assert_true(strcspn(at, "\n") <= 80);
    assert_non_null(strstr(o.out, "\nlongformer-cls(w=5, g=2) "));
    outcome_finish(&o);
    o = shell_run("", "show no_such_name -n 8");
    assert_int_equal(o.code, 2);
    assert_non_null(strstr(o.err, "'maskc gallery' lists"));
    outcome_finish(&o);
}

/* A failure prints its one line and leaves no file. */
static void test_failures(void **state)
{
    (void)state;
    static const struct {
        const char *line, *says;
    } bad[] = {
        {"make bigbird -n 128 -o not.mask", ".npy"},
        {"make star -n 128 -o not.txt", ".mask, .npy or .safetensors"},
        {"make star -n 128", "-o"},
        {"make star -n 128 -o nowhere/not.mask", "nowhere"},
        {"show star -n 128 -o not.gif", "not.gif"},
        {"show star -n 128 -o nowhere/not.svg", "nowhere"},
    };
    char *before = shell_listing();
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        struct outcome o = shell_run("", bad[k].line);
        if ((o.code != 2 && o.code != 3) || !strstr(o.err, bad[k].says) || o.out[0])
            fail_msg("maskc %s: exit code %d, %s%s", bad[k].line, o.code, o.err, o.out);
        outcome_finish(&o);
    }
    char *after = shell_listing();
    assert_string_equal(before, after);
    free(before);
    free(after);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return fprintf(stderr, "usage: show_test MASKC\n"), 2;
    shell_start(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_papers),  cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_groups),  cmocka_unit_test(test_groups_json),
        cmocka_unit_test(test_gallery), cmocka_unit_test(test_failures),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shell_stop();
    return failed;
}
