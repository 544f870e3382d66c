/* SPDX-License-Identifier: Apache-2.0 */
/* The host compiler as maskc runs it: every shape of the CPU templates compiles for every level by clang or gcc, without
   a warning (unoptimised, which says most of what a compiler has to say in a tenth of the time), every shape
   for one of the levels as maskc has it optimised (with clang where no other test does that), to the same bytes each time; what is wrong is said in one
   line with the compiler's own words below it. The compiler is asked for once a process: `main` runs the tests
   again with MASKC_CC=gcc and with one that is not there. */
#include "gen/emit/emit.h"
#include "gen/family/family.h"
#include "masks/base/folder.h"
#include "runtime/base/process.h"
#include "runtime/compile/compile.h"
#include "runtime/device/machine.h"
#include "tests/support/known/known_text.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct known known; /* texts that this compiler took before */

/* With `more` behind maskc's own flags, where it is not null. */
static int compile(const struct target *t, const struct source *s, const char *more,
                   struct binary *b, struct error *e)
{
    struct host_flags flags;
    const char *all[HOST_MAX_FLAGS + 5];
    uint32_t n = 0;
    host_flags(t, &flags);
    for (; flags.flag[n]; n++)
        all[n] = flags.flag[n];
    all[n++] = "-Wall";
    all[n++] = "-Wextra";
    all[n++] = "-Werror";
    all[n++] = more;
    all[n] = NULL;
    return host_compile(s, all, b, e);
}

/* clang-format off */
static const struct kernel_request shapes[] = {
    {.head_dim = 64, .backward = true},
    {.head_dim = 24, .backward = true, .dropout = true, .dtype = ABI_BF16},
    {.head_dim = 256, .transform = ABI_SPARSEGEN, .dropout = true, .backward = true},
    {.head_dim = 80, .transform = ABI_SPARSEGEN, .dtype = ABI_BF16},
    {.head_dim = 72, .backward = true, .dropout = true, .bias = ABI_BIAS_SCALE},
    {.head_dim = 64, .backward = true, .dtype = ABI_BF16, .bias = ABI_BIAS_ADD},
    {.head_dim = 40, .backward = true, .dropout = true, .dtype = ABI_F16},
    {.head_dim = 96, .backward = true, .dropout = true, .dtype = ABI_BF16},
};
/* clang-format on */
enum { SHAPES = sizeof shapes / sizeof *shapes };

static struct cache_key key_of(const struct target *t, const struct source *s, const char *more)
{
    struct text all = {0};
    text_add(&all, "%s %s\n", t->name, more ? more : "");
    source_flatten(s, &all);
    const struct cache_key key = cache_key(all.bytes, all.length);
    text_finish(&all);
    return key;
}

static void must_compile(const struct target *t, uint32_t shape, const char *more)
{
    struct error e = {0};
    struct binary b;
    struct source *s = emit_source(t, &(struct kernel_config){.request = shapes[shape]});
    if (!known_skips(&known, key_of(t, s, more))) {
        if (compile(t, s, more, &b, &e) < 0)
            fail_msg("%s, shape %u %s: %s", t->name, shape, more ? more : "", e.text);
        binary_finish(&b);
    }
    source_destroy(s);
}

/* Without work for a matrix unit the text is that of the level below. */
static bool has_text(const struct target *t, uint32_t shape)
{
    return t->kind == TARGET_CPU &&
           (!t->matrix_machine ||
            family_is_matrix(t, &(struct kernel_config){.request = shapes[shape]}));
}

static bool is_clang(void)
{
    return !strncmp(host_compiler_version(), "clang", 5);
}

/* A build with clang compiles half of the pairs of shape and level, one with another compiler the other half: each sees all shapes and all levels. */
static void test_shapes(void **state)
{
    (void)state;
    for (const struct target *t = targets; t->name; t++)
        for (uint32_t k = 0; k < SHAPES; k++)
            if (has_text(t, k) && ((uint32_t)(t - targets) + k) % 2 == is_clang())
                must_compile(t, k, "-O0");
}

/* clang warns of no optimised code but of loops with pragmas, which the templates have none of; and it compiles the
   levels that run here for covering_test, which has the pairs of all features. */
static bool is_known(const struct target *t)
{
    return is_clang() && machine_runs(t->name);
}

/* Levels alternately, from where on bf16 with softmax meets both levels that have a matrix unit. */
static void test_optimised(void **state)
{
    (void)state;
    const struct target *t = target_find("x86-64-v4", NULL);
    for (uint32_t k = 0; k < SHAPES; k++) {
        if (!is_known(t))
            must_compile(t, k, NULL);
        do
            t = t[1].name ? t + 1 : targets;
        while (t->kind != TARGET_CPU);
    }
}

static void test_same_bytes(void **state)
{
    (void)state;
    struct error e = {0};
    struct binary a, b;
    struct source *s =
        emit_source(&targets[0], &(struct kernel_config){.request = {.head_dim = 64}});
    assert_int_equal(compile(&targets[0], s, NULL, &a, &e), 0);
    assert_int_equal(compile(&targets[0], s, NULL, &b, &e), 0);
    assert_int_equal(a.image[0].size, b.image[0].size);
    assert_memory_equal(a.image[0].bytes, b.image[0].bytes, a.image[0].size);
    assert_true(strlen(a.compiler) > 4);
    binary_finish(&a);
    binary_finish(&b);
    source_destroy(s);
}

static void test_wrong_source(void **state)
{
    (void)state;
    struct error e = {0};
    struct binary b;
    const struct source_file file = {"sub/wrong.c", "int x = 1;\nint f(void) { return y; }\n"};
    const struct source s = {.files = &file, .n_files = 1};
    assert_int_equal(compile(&targets[0], &s, NULL, &b, &e), -1);
    assert_int_equal(e.kind, ERROR_UNAVAILABLE);
    assert_non_null(strstr(e.text, "could not compile the kernel (exit status 1)\n"));
    assert_non_null(strstr(e.text, "\nsub/wrong.c:"));
}

static void test_no_compiler(void **state)
{
    (void)state;
    struct error e = {0};
    struct binary b;
    struct source *s =
        emit_source(&targets[0], &(struct kernel_config){.request = {.head_dim = 64}});
    assert_string_equal(host_compiler_version(), "");
    assert_int_equal(compile(&targets[0], s, NULL, &b, &e), -1);
    assert_int_equal(e.kind, ERROR_UNAVAILABLE);
    assert_string_equal(e.text, "MASKC_CC: no C compiler runs as '/nonexistent/cc'; "
                                "unset it, or install one: apt install clang");
    source_destroy(s);
}

static void test_process(void **state)
{
    (void)state;
    struct text output = {0};
    struct error e = {0};
    const char *two_outputs[] = {"sh", "-c", "echo one; echo two >&2; exit 3", NULL};
    const char *killed[] = {"sh", "-c", "kill -9 $$", NULL};
    const char *nothing[] = {"/nonexistent/program", NULL};
    assert_int_equal(process_run(two_outputs, &output, &e), 3);
    assert_string_equal(text_get(&output), "one\ntwo\n");
    assert_int_equal(process_run(killed, &output, &e), 128 + 9);
    assert_int_equal(process_run(nothing, &output, &e), -1);
    assert_int_equal(e.kind, ERROR_UNAVAILABLE);
    text_finish(&output);
    char *folder = folder_temporary(&e);
    assert_non_null(folder);
    const char *fill[] = {"mkdir", "-p", NULL, NULL};
    char path[4096];
    snprintf(path, sizeof path, "%s/a/b", folder);
    fill[2] = path;
    assert_int_equal(process_run(fill, &output, &e), 0);
    folder_remove(folder);
    assert_null(process_find(folder));
    const char *look[] = {"test", "-e", folder, NULL};
    assert_int_equal(process_run(look, &output, &e), 1);
    text_finish(&output);
    free(folder);
}

static int run_again(const char *self, const char *compiler, bool update)
{
    const char *argument[] = {self, "again", update ? "--update" : NULL, NULL};
    struct text output = {0};
    struct error e = {0};
    setenv("MASKC_CC", compiler, 1);
    int status = process_run(argument, &output, &e);
    fprintf(stderr, "MASKC_CC=%s:\n%s", compiler, status < 0 ? e.text : text_get(&output));
    text_finish(&output);
    return status;
}

/* A list for each compiler. */
static void start_known(bool update)
{
    static const char *const files[] = {"tests/kernels/cpu/cpu_compile_test.c",
                                        "runtime/compile/compile.c", "runtime/compile/host.c",
                                        NULL};
    known_start_files(&known, is_clang() ? "cpu_compile_clang" : "cpu_compile_gcc", files,
                      update);
}

int main(int argc, char **argv)
{
    const bool update = argc > 1 && !strcmp(argv[argc - 1], "--update");
    const bool again = argc > 1 && !strcmp(argv[1], "again");
    const struct CMUnitTest compiles[] = {
        cmocka_unit_test(test_shapes),     cmocka_unit_test(test_optimised),
        cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_wrong_source),
        cmocka_unit_test(test_process),
    };
    const struct CMUnitTest none[] = {cmocka_unit_test(test_no_compiler)};
    const char *asked = getenv("MASKC_CC");
    if (again && asked && !strcmp(asked, "/nonexistent/cc"))
        return cmocka_run_group_tests_name("no compiler", none, NULL, NULL);
    start_known(update);
    int failed = known_finish(
        &known, cmocka_run_group_tests_name("host compiler", compiles, NULL, NULL));
    if (again)
        return failed;
    char *gcc = process_find("gcc");
    if (gcc)
        failed += run_again(argv[0], "gcc", update) != 0;
    free(gcc);
    return failed + (run_again(argv[0], "/nonexistent/cc", false) != 0);
}
