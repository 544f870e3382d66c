/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: what it prints, what it returns, and that a failure leaves no trace. */
#include "tests/cli/fixtures.h"
#include "tests/cli/shell.h"
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the standard ones */
#include <cmocka.h>

struct bad {
    const char *line; /* after "maskc" */
    int code;
    const char *says; /* part of what stderr's first line says */
    const char *prefix;
};

#define NO_COMPILER "PATH=/proc/nonexistent MASKC_CC= XDG_CACHE_HOME=/proc/nonexistent/cache"
/* clang-format off */
static const struct bad bad[] = {
    /* usage */
    {"fry", 2, "'fry' is not a command"},
    {"show", 2, "MASK is missing"},
    {"show dense -n 8 --sideways", 2, "unrecognized option"},
    {"show dense dense -n 8", 2, "unexpected argument"},
    {"show dense -n x", 2, "'x' is not a length"},
    {"show dense -n 0", 2, "'0' is not a length"},
    {"show dense -n 8,16", 2, "one length is expected"},
    {"show dense -n 2000000", 2, "is not a length"},
    {"compile dense -n 8 --head-dim 1e3 -o x.mkb", 2, "not a whole number"},
    {"compile dense -n 8", 2, "-o FILE.mkb"},
    {"compile dense -n 8 -o x.bin", 2, "-o FILE.mkb"},
    {"emit dense -n 8", 2, "-o DIR"},
    {"cache fill", 2, "neither list nor clear"},
    /* masks */
    {"show dense", 2, "-n"},
    {"show 'windo(3)' -n 16", 2, "windo"},
    {"show 'window(3' -n 16", 2, ")"},
    {"show 'diagonal(16)' -n 16", 2, "16"},
    {"show 'distance(40)' -n 16", 2, "40"},
    {"show 'stride(0)' -n 16", 2, "stride"},
    {"show nothere.mask", 2, "nothere.mask"},
    {"show uneven.mask", 2, "1"},
    {"show outside.mask", 2, "3"},
    {"show blockbert-2 -n 16 --heads 5", 2, "heads"},
    {"show two.mask --layer 3", 2, "layer"},
    {"show square.npy -n 64", 2, "64"},
    {"show good.mkb -n 64", 2, "64"},
    {"show oblong.npy", 2, "oblong.npy"},
    {"show flat.npy", 2, "flat.npy"},
    {"show big-endian.npy --threshold 0", 2, "big-endian.npy"},
    {"show huge.npy", 2, "huge.npy"},
    {"show short.npy", 2, "short.npy"},
    {"show noise.npy", 2, "noise.npy"},
    {"show float.npy", 2, "--threshold"},
    {"show nan.npy --threshold 0", 2, "nan.npy"},
    {"show nan.npy --keep 10", 2, "nan.npy"},
    {"show float.npy --keep 101", 2, "keep"},
    {"show additive.npy", 2, "--threshold"},
    {"show folder.npy", 2, "folder.npy"},
    {"show overlap.safetensors", 2, "overlap.safetensors"},
    {"show short.safetensors", 2, "short.safetensors"},
    {"show two.safetensors", 2, "--tensor"},
    {"show two.safetensors --tensor c", 2, "c"},
    {"make dense -n 8", 2, "-o"},
    {"make 'random(0.5)' -n 512 -o x.mask", 2, ".npy"},
    /* kernels */
    {"compile dense -n 8 --head-dim 20 -o x.mkb", 2, "multiple of 8"},
    {"compile dense -n 8 --head-dim 8 -o x.mkb", 2, "16"},
    {"compile dense -n 8 --transform sparsegen=1 -o x.mkb", 2, "lambda"},
    {"compile dense -n 8 --transform sparsegen=nan -o x.mkb", 2, "lambda"},
    {"compile dense -n 8 --transform hardmax -o x.mkb", 2, "hardmax"},
    {"compile dense -n 8 --soft lightly -o x.mkb", 2, "lightly"},
    {"compile dense -n 8 --dtype int8 -o x.mkb", 2, "int8"},
    {"compile dense -n 8 --target sm_11 -o x.mkb", 2, "sm_11"},
    {"compile dense -n 8 --target cpu, -o x.mkb", 2, "target"},
    {"compile dense -n 8 --machine abacus -o x.mkb", 2, "abacus"},
    {"compile dense -n 8 -o /proc/nonexistent/x.mkb", 2, "/proc/nonexistent/x.mkb"},
    {"compile dense -n 8 -o folder.mkb", 2, "folder.mkb"},
    {"plan dense -n 8 --target sm_11", 2, "sm_11"},
    /* kernel files */
    {"info nothere.mkb", 2, "nothere.mkb"},
    {"info q.npy", 2, "q.npy"},
    {"info folder.mkb", 2, "folder.mkb"},
    {"verify cut.mkb", 2, "cut.mkb"},
    {"verify half.mkb", 2, "half.mkb"},
    {"run longer.mkb --query q.npy --key q.npy --value q.npy -o r", 2, "longer.mkb"},
    {"info version.mkb", 2, "version"},
    {"show cut.mkb", 2, "cut.mkb"},
    {"verify good.mkb --device abacus", 2, "abacus"},
    {"bench good.mkb -n 16", 2, "good.mkb"},
    {"bench dense -n 8 --pass sideways", 2, "sideways"},
    {"bench dense -n 8 --dtype f32,int8", 2, "int8"},
    {"bench dense -n 8 --plot x.pdf", 2, "x.pdf"},
    {"bench dense -n 8 --seconds -1", 2, "above 0"},
    /* run */
    {"run good.mkb -o r", 2, "--query"},
    {"run good.mkb --query nothere.npy --key q.npy --value q.npy -o r", 2, "nothere.npy"},
    {"run good.mkb --query packed.npy --key q.npy --value q.npy -o r", 2, "packed.npy"},
    {"run good.mkb --query q.npy --key wide.npy --value q.npy -o r", 2, "wide.npy"},
    {"run good.mkb --query wide.npy --key q.npy --value q.npy -o r", 2, "wide.npy"},
    {"run good.mkb --query long.npy --key q.npy --value q.npy -o r", 2, "long.npy"},
    {"run good.mkb --query length.npy --key q.npy --value q.npy -o r", 2, "length.npy"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --lengths bad-length.npy -o r", 2, "bad-length.npy"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --lengths negative-length.npy -o r", 2, "negative-length.npy"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --lengths two-lengths.npy -o r", 2, "two-lengths.npy"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --lengths q.npy -o r", 2, "q.npy"},
    {"run good.mkb --query packed.npy --key packed.npy --value packed.npy --offsets backwards.npy -o r", 2, "backwards.npy"},
    {"run good.mkb --query packed.npy --key packed.npy --value packed.npy --offsets short-offsets.npy -o r", 2, "short-offsets.npy"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --lengths length.npy --offsets offsets.npy -o r", 2, "not both"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --dropout 0.1 -o r", 2, "dropout"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --dropout 1 -o r", 2, "dropout"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --layer 1 -o r", 2, "layer"},
    {"run forward.mkb --query q.npy --key q.npy --value q.npy --grad q.npy -o r", 2, "forward-only"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy --soft soft.npy -o r", 2, "without a soft mask"},
    {"run soft.mkb --query q.npy --key q.npy --value q.npy -o r", 2, "--soft X.npy is needed"},
    {"run soft.mkb --query q.npy --key q.npy --value q.npy --soft q.npy -o r", 2, "[1, 32, 32]"},
    {"run soft.mkb --query q.npy --key q.npy --value q.npy --soft square.npy -o r", 2, "square.npy"},
    {"run soft.mkb --query q.npy --key q.npy --value q.npy --soft nothere.npy -o r", 2, "nothere.npy"},
    {"run soft.mkb --query q.npy --key q.npy --value q.npy --soft soft.npy --diagonals -o r", 2, "--grad"},
    {"run good.mkb --query q.npy --key q.npy --value q.npy -o q.npy", 2, "q.npy"},
    /* this machine cannot */
    {"compile star -n 24 -o x.mkb", 3, "install", NO_COMPILER},
    {"compile star -n 24 --target sm_80 -o x.mkb", 3, "NVRTC", "MASKC_NVRTC=/proc/nonexistent XDG_CACHE_HOME=/proc/nonexistent/cache"},
};
/* clang-format on */

/* False, and why it is printed, where the line does not fail as it should. */
static bool fails_well(const struct bad *b)
{
    char *before = shell_listing();
    struct outcome o = shell_run(b->prefix, b->line);
    char *after = shell_listing(), *said = strstr(o.err, b->says);
    const char *wrong = o.code != b->code                     ? "another exit code"
                        : strncmp(o.err, "maskc", 5)          ? "no 'maskc:'"
                        : !said || strchr(o.err, '\n') < said ? "another text"
                        : *o.out                              ? "something on stdout"
                        : strcmp(before, after)               ? "something left behind"
                                                              : NULL;
    if (wrong)
        print_error("maskc %s\n  wants %d '%s', got %d %s\n  %s: %s\n", b->line, b->code,
                    b->says, o.code, o.err, wrong, o.out);
    outcome_finish(&o);
    free(before);
    free(after);
    return !wrong;
}

static void test_bad_input(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        wrong += !fails_well(&bad[k]);
    assert_int_equal(wrong, 0);
}

static void test_flipped_kernels(void **state)
{
    (void)state;
    for (int k = 0; k < FIXTURE_FLIPS; k++) {
        char line[64], says[32];
        snprintf(line, sizeof line, "verify flipped-%d.mkb", k);
        snprintf(says, sizeof says, "flipped-%d.mkb", k);
        assert_true(fails_well(&(struct bad){line, 2, says, NULL}));
    }
}

/* A GPU may be here; where none is, asking for one is exit code 3. */
static void test_no_gpu(void **state)
{
    (void)state;
    struct outcome o = shell_run(NULL, "devices");
    bool none = strstr(o.out, "cuda       not here") != NULL;
    assert_int_equal(o.code, 0);
    outcome_finish(&o);
    if (none)
        assert_true(
            fails_well(&(struct bad){"verify good.mkb --device cuda", 3, "cuda", NULL}));
}

static void check_says(const char *line, const char *says)
{
    struct outcome o = shell_run(NULL, line);
    if (o.code || *o.err || !strstr(o.out, says))
        fail_msg("maskc %s: %d, '%s' is not in: %s%s", line, o.code, says, o.out, o.err);
    outcome_finish(&o);
}

static void test_help(void **state)
{
    (void)state;
    static const char *const command[] = {"show",   "make", "plan",  "emit",  "compile", "info",
                                          "verify", "run",  "bench", "cache", "devices"};
    check_says("", "Usage: maskc COMMAND");
    check_says("--version", "maskc 0.");
    for (size_t k = 0; k < sizeof command / sizeof *command; k++) {
        char line[64], says[64];
        snprintf(says, sizeof says, "maskc %s", command[k]);
        check_says("", says);
        snprintf(line, sizeof line, "%s --help", command[k]);
        snprintf(says, sizeof says, "Usage: maskc %s", command[k]);
        check_says(line, says);
    }
    check_says("run --help", "--offsets=O.npy");
    check_says("bench --help", "--plot=FILE.svg");
}

/* The one JSON value that the command prints; the caller lets go of it. */
static json_t *run_json(const char *line, int code)
{
    json_error_t e;
    struct outcome o = shell_run(NULL, line);
    json_t *j = json_loads(o.out, 0, &e);
    if (o.code != code || !j)
        fail_msg("maskc %s: %d, %s: %s%s", line, o.code, e.text, o.out, o.err);
    outcome_finish(&o);
    return j;
}

/* Fields as "name:type": s string, i integer, r number or null, b boolean, a array. */
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
        const char *top[8], *list, *element[20];
    } row[] = {
        {"show two.mask --json",
         {"length:i", "heads:i", "layers:i", "distinct:i", "masks:a"},
         "masks",
         {"heads:a", "at:a", "active:i", "sparsity:r", "empty_rows:i", "symmetric:b",
          "structure:a"}},
        {"plan star -n 64 --json",
         {"target:s", "machine:s", "masks:a"},
         "masks",
         {"heads:a", "at:a", "pass:s", "lowering:s", "executed_fraction:r", "predicted_s:r",
          "dense_predicted_s:r", "floor_s:r", "bound:s", "rejected:a"}},
        {"verify good.mkb --json",
         {"ok:b", "checks:a"},
         "checks",
         {"name:s", "error:r", "tolerance:r", "ok:b"}},
        {"info good.mkb --json",
         {"length:i", "heads:i", "targets:a", "plans:a"},
         "targets",
         {"name:s", "compiler:s", "code_bytes:i"}},
        {"bench star -n 32 --heads 1 --dtype f32 --head-dim 16 --seconds 0.1 --json",
         {"device:s", "threads:i", "results:a"},
         "results",
         {"mask:s", "length:i", "heads:i", "batch:i", "head_dim:i", "dtype:s", "pass:s",
          "lowering:s", "median_s:r", "p10_s:r", "p90_s:r", "dense_s:r", "speedup:r",
          "predicted_s:r", "floor_s:r", "hard_s:r"}},
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        json_t *j = run_json(row[k].line, 0);
        check_fields(j, row[k].top);
        check_fields(first_of(j, row[k].list), row[k].element);
        json_decref(j);
    }
}

/* f32 and f64 inputs, ragged, packed; what stands behind the outputs is checked by verify. */
static void test_run(void **state)
{
    (void)state;
    static const char *const outputs[] = {"out", "lse", "dq", "dk", "dv"};
    check_says("run good.mkb --query q.npy --key q.npy --value q.npy --grad q.npy -o a/b", "");
    check_says("run good.mkb --query q64.npy --key q64.npy --value q64.npy --grad q64.npy -o c",
               "");
    check_says("run good.mkb --query packed.npy --key packed.npy --value packed.npy "
               "--offsets offsets.npy -o d",
               "");
    check_says("run good.mkb --query q.npy --key q.npy --value q.npy --lengths length.npy -o e",
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

/* The gradient of the soft mask, whole and along diagonals: the same sums. */
static void test_soft(void **state)
{
    (void)state;
    enum { N = 32 };
    const char *line = "run soft.mkb --query q.npy --key q.npy --value q.npy --grad q.npy "
                       "--soft soft.npy -o soft";
    char diagonals[200];
    size_t size;
    snprintf(diagonals, sizeof diagonals, "%s-lines --diagonals", line);
    check_says(line, "");
    check_says(diagonals, "");
    check_says("info soft.mkb", "soft mask: scale");
    check_says("verify soft.mkb", "whole mask: dsoft by diagonals");
    check_says("bench soft.mkb --seconds 0.1", "of hard");
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

/* A kernel that is wrong is told so. The wrong one comes from templates whose Philox has another
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
    json_t *j = run_json("verify wrong.mkb --json", 1);
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
    struct outcome o = shell_run("MASKC_CC=", "emit star -n 64 --target x86-64-v2 -o emitted");
    assert_int_equal(o.code, 0);
    /* The last line is the command that compiles it: it must work where it is typed. */
    char *command = strstr(o.out, "cd emitted && ");
    assert_non_null(command);
    command[strcspn(command, "\n")] = 0;
    assert_int_equal(system(command), 0);
    outcome_finish(&o);
    free(fixture_read("emitted/plan.h", &size));
    free(fixture_read("emitted/plan.txt", &size));
    free(fixture_read("emitted/tables.safetensors", &size));
}

static void test_pictures(void **state)
{
    (void)state;
    check_says("bench star -n 32,64 --heads 1 --dtype f32 --head-dim 16 --seconds 0.1 "
               "--plot lines.svg",
               "star");
    check_says("bench star -n 32 --heads 1 --head-dim 16 --pass forward --seconds 0.1 "
               "--plot bars.svg",
               "star");
    size_t size;
    uint8_t *svg = fixture_read("lines.svg", &size);
    assert_non_null(strstr((char *)svg, "</svg>"));
    free(svg);
    svg = fixture_read("bars.svg", &size);
    assert_non_null(strstr((char *)svg, "</svg>"));
    free(svg);
}

static void test_cache(void **state)
{
    (void)state;
    check_says("cache list", "entr");
    check_says("cache clear", "removed");
    check_says("cache list", "0 entries");
    for (int k = 0; k < 2; k++) {
        struct outcome o = shell_run("HOME= XDG_CACHE_HOME=", k ? "cache clear" : "cache list");
        assert_int_equal(o.code, 0);
        assert_non_null(strstr(o.out, "no cache folder"));
        outcome_finish(&o);
    }
}

static int set_up(void **state)
{
    (void)state;
    fixtures_make();
    struct outcome o = shell_run(NULL, "compile star -n 32 --head-dim 16 -o good.mkb");
    if (o.code)
        fail_msg("%s", o.err);
    outcome_finish(&o);
    o = shell_run(NULL, "compile star -n 32 --head-dim 16 --forward-only -o forward.mkb");
    if (o.code)
        fail_msg("%s", o.err);
    outcome_finish(&o);
    o = shell_run(NULL, "compile star -n 32 --head-dim 16 --soft scale -o soft.mkb");
    if (o.code)
        fail_msg("%s", o.err);
    outcome_finish(&o);
    fixtures_break_kernel();
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_help),   cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_no_gpu), cmocka_unit_test(test_flipped_kernels),
        cmocka_unit_test(test_json),   cmocka_unit_test(test_run),
        cmocka_unit_test(test_emit),   cmocka_unit_test(test_pictures),
        cmocka_unit_test(test_cache),  cmocka_unit_test(test_wrong_kernel),
        cmocka_unit_test(test_soft),
    };
    if (argc != 2) {
        fprintf(stderr, "usage: cli_test MASKC\n");
        return 2;
    }
    shell_start(argv[1]);
    shell_compile_fast();
    int failed = cmocka_run_group_tests_name("cli", tests, set_up, NULL);
    shell_stop();
    return failed;
}
