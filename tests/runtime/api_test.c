/* SPDX-License-Identifier: Apache-2.0 */
/* maskc.h on this machine's CPU, from a mask and options to a kernel file: what callers see. */
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "runtime/device/machine.h"
#include "runtime/load/load.h"
#include "tests/runtime/api_compile.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct kernel_request plain = {.head_dim = 64};

static void zeroed_options_are_defaults(void **state)
{
    (void)state;
    struct maskc_bytes bytes = api_compile("star", (struct maskc_options){.length = 96});
    struct maskc_kernel *kernel;
    struct maskc_info info = {.struct_size = sizeof info};
    assert_int_equal(maskc_load_memory(bytes.data, bytes.size, NULL, &kernel, NULL), 0);
    maskc_kernel_info(kernel, &info);
    assert_int_equal(info.length, 96);
    assert_int_equal(info.heads, 1);
    assert_int_equal(info.layers, 1);
    assert_int_equal(info.head_dim, 64);
    assert_int_equal(info.dtype, MASKC_F32);
    assert_int_equal(info.transform, MASKC_SOFTMAX);
    assert_int_equal(info.dropout, 0);
    assert_int_equal(info.backward, 1);
    assert_string_equal(info.target, machine_cpu_target(&plain));
    assert_string_equal(info.device, "cpu");
    assert_non_null(strstr(maskc_plan_text(kernel), "x86"));
    maskc_kernel_destroy(kernel);
    maskc_bytes_free(&bytes);
    assert_null(bytes.data);
    maskc_bytes_free(&bytes);
    maskc_bytes_free(NULL);
    maskc_kernel_destroy(NULL);
}

static void options_reach_the_kernel(void **state)
{
    (void)state;
    const struct maskc_options o = {.dtype = MASKC_BF16,
                                    .head_dim = 80,
                                    .transform = MASKC_SPARSEGEN,
                                    .lambda = -4,
                                    .dropout = 1,
                                    .forward_only = 1,
                                    .length = 40,
                                    .heads = 3,
                                    .targets = "x86-64-v2"};
    struct maskc_bytes bytes = api_compile("window(2)", o);
    struct maskc_kernel *kernel;
    struct maskc_info info = {.struct_size = sizeof info};
    assert_int_equal(maskc_load_memory(bytes.data, bytes.size, "cpu", &kernel, NULL), 0);
    maskc_kernel_info(kernel, &info);
    assert_int_equal(info.dtype, MASKC_BF16);
    assert_int_equal(info.head_dim, 80);
    assert_int_equal(info.transform, MASKC_SPARSEGEN);
    assert_true(info.lambda == -4);
    assert_int_equal(info.dropout, 1);
    assert_int_equal(info.backward, 0);
    assert_int_equal(info.heads, 3);
    assert_string_equal(info.target, "x86-64-v2");
    maskc_kernel_destroy(kernel);
    maskc_bytes_free(&bytes);
}

/* The same mask by name and by its bytes gives the same kernel file, but for the mask's name. */
static void a_dense_array_is_a_mask(void **state)
{
    (void)state;
    enum { N = 50, HEADS = 2 };
    uint8_t *bits = memory_new(HEADS * N * N, 1);
    for (int k = 0; k < HEADS * N * N; k++) {
        int i = k / N % N, j = k % N;
        bits[k] = abs(i - j) <= 2 ? 3 : 0;
    }
    struct maskc_options o = {.cache_dir = api_cache};
    struct maskc_bytes dense = {0};
    assert_int_equal(maskc_compile_dense(bits, 1, HEADS, N, &o, &dense, NULL), 0);
    struct maskc_bytes named =
        api_compile("window(2)", (struct maskc_options){.length = N, .heads = HEADS});
    struct artifact *a, *b;
    assert_int_equal(artifact_read(dense.data, dense.size, "dense", &a, NULL), 0);
    assert_int_equal(artifact_read(named.data, named.size, "named", &b, NULL), 0);
    assert_true(mask_equal(a->mask, b->mask));
    const struct code_image *x = &a->target[0].image[0], *y = &b->target[0].image[0];
    assert_int_equal(x->size, y->size);
    assert_memory_equal(x->bytes, y->bytes, x->size);
    artifact_destroy(a);
    artifact_destroy(b);
    maskc_bytes_free(&dense);
    maskc_bytes_free(&named);
    free(bits);
}

/* Two cold compiles and a cached one: the same bytes. */
static void kernel_files_are_deterministic(void **state)
{
    (void)state;
    const struct maskc_options o = {.length = 70, .heads = 2};
    struct maskc_bytes cached = api_compile("longformer", o),
                       again = api_compile("longformer", o);
    struct maskc_options uncached = o;
    uncached.cache_dir = "";
    struct maskc_bytes cold = {0};
    assert_int_equal(maskc_compile("longformer", &uncached, &cold, NULL), 0);
    assert_int_equal(cached.size, again.size);
    assert_memory_equal(cached.data, again.data, cached.size);
    assert_int_equal(cached.size, cold.size);
    assert_memory_equal(cached.data, cold.data, cold.size);
    maskc_bytes_free(&cached);
    maskc_bytes_free(&again);
    maskc_bytes_free(&cold);
}

static void compile_errors_have_codes_and_texts(void **state)
{
    (void)state;
    static const struct {
        const char *mask;
        struct maskc_options options;
        const char *text;
    } cases[] = {
        {NULL, {0}, "no mask"},
        {"wndow(2)", {.length = 8}, "wndow"},
        {"window(2)", {0}, "-n"},
        {"window(2)", {.length = 8, .targets = "sm_1"}, "unknown target 'sm_1'"},
        {"window(2)", {.length = 8, .targets = ""}, "unknown target ''"},
        {"window(2)", {.length = 8, .targets = "cpu,,cuda"}, "unknown target ''"},
        {"window(2)", {.length = 8, .head_dim = 20}, "20"},
        {"window(2)", {.length = 8, .transform = MASKC_SPARSEGEN, .lambda = 1}, "lambda"},
        {"window(2)", {.length = 8, .machine = "abacus"}, "abacus"},
        {"window(2)", {.length = 8, .machine = "h100"}, "h100"},
        {"nothere.npy", {0}, "nothere.npy"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct maskc_options o = cases[k].options;
        struct maskc_bytes bytes = {(uint8_t *)"x", 1};
        struct maskc_error error = {0};
        o.cache_dir = api_cache;
        int code = maskc_compile(cases[k].mask, &o, &bytes, &error);
        if (code != MASKC_BAD_INPUT || error.code != code || !strstr(error.text, cases[k].text))
            fail_msg("case %zu: code %d, '%s'", k, code, error.text);
        assert_int_equal(bytes.size, 1); /* untouched */
    }
    const uint8_t bit = 1;
    struct maskc_bytes bytes;
    assert_int_equal(maskc_compile_dense(NULL, 1, 1, 1, NULL, &bytes, NULL), MASKC_BAD_INPUT);
    assert_int_equal(maskc_compile_dense(&bit, 0, 1, 1, NULL, &bytes, NULL), MASKC_BAD_INPUT);
    assert_int_equal(maskc_compile_dense(&bit, 1, 1, 0, NULL, &bytes, NULL), MASKC_BAD_INPUT);
    assert_int_equal(maskc_compile_dense(&bit, 1, 1, UINT32_MAX, NULL, &bytes, NULL),
                     MASKC_BAD_INPUT);
}

static void target_lists_are_resolved(void **state)
{
    (void)state;
    const struct target *found[ARTIFACT_MAX_TARGETS];
    uint32_t count;
    char list[64];
    snprintf(list, sizeof list, "cpu,%s,sm_80,cpu,sm_80", machine_cpu_target(&plain));
    assert_int_equal(targets_resolve(list, &plain, found, ARTIFACT_MAX_TARGETS, &count, NULL),
                     0);
    assert_int_equal(count, 2);
    assert_string_equal(found[0]->name, machine_cpu_target(&plain));
    assert_string_equal(found[1]->name, "sm_80");
    assert_int_equal(targets_resolve("cuda", &plain, found, ARTIFACT_MAX_TARGETS, &count, NULL),
                     0);
    assert_true(count == 1 || count == 3); /* with a GPU its own */
    struct error e = {0};
    assert_int_equal(
        targets_resolve("cpu,x86-64-v9", &plain, found, ARTIFACT_MAX_TARGETS, &count, &e), -1);
    assert_non_null(strstr(e.text, "x86-64-v3"));
    assert_int_equal(targets_resolve("sm_80,sm_86", &plain, found, 1, &count, &e), -1);
    assert_false(machine_runs("sm_80"));
    assert_true(machine_runs(machine_cpu_target(&plain)));
    const struct kernel_request half = {.dtype = ABI_BF16, .head_dim = 64};
    assert_true(machine_rank(machine_cpu_target(&half)) >=
                machine_rank(machine_cpu_target(&plain)));
    assert_true(machine_rank("x86-64-v4") == 0 ||
                machine_rank("x86-64-v4") > machine_rank("x86-64-v3"));
    assert_true(machine_rank("x86-64-amx") == 0 ||
                machine_rank("x86-64-amx") > machine_rank("x86-64-bf16"));
}

/* The value that the test found; null: none. */
static char *cap_take(void)
{
    char *before = getenv(MACHINE_CAP);
    return before ? memory_text(before) : NULL;
}

static void cap_restore(char *before)
{
    if (before)
        setenv(MACHINE_CAP, before, 1);
    else
        unsetenv(MACHINE_CAP);
    free(before);
}

static void a_cap_hides_the_levels_above_it(void **state)
{
    static const char *const level[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-bf16",
                                        "x86-64-amx"};
    enum { LEVELS = sizeof level / sizeof *level };
    const struct kernel_request half = {.dtype = ABI_BF16, .head_dim = 64};
    char *before = cap_take();
    int rank[LEVELS];
    struct error e = {0};
    (void)state;
    setenv(MACHINE_CAP, "", 1);
    assert_null(machine_cap());
    for (int k = 0; k < LEVELS; k++)
        rank[k] = machine_rank(level[k]);
    for (int cap = 0; cap < LEVELS; cap++) {
        const struct target *found;
        uint32_t count;
        setenv(MACHINE_CAP, level[cap], 1);
        assert_int_equal(machine_check_cap(&e), 0);
        assert_string_equal(machine_cap(), level[cap]);
        for (int k = 0; k < LEVELS; k++)
            assert_int_equal(machine_rank(level[k]), k <= cap ? rank[k] : 0);
        assert_true(machine_runs(machine_level()));
        assert_int_equal(targets_resolve("cpu", &half, &found, 1, &count, &e), 0);
        assert_true(machine_runs(found->name));
    }
    cap_restore(before);
}

static void a_wrong_cap_is_refused(void **state)
{
    static const char *const wrong[] = {"avx2",   "x86-64-v5", "X86-64-v3",
                                        "x86-64", "sm_80",     "v3"};
    char *before = cap_take();
    struct maskc_options o = {.length = 32};
    struct maskc_bytes bytes = {0};
    struct maskc_error error = {0};
    (void)state;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        setenv(MACHINE_CAP, wrong[k], 1);
        assert_int_equal(maskc_compile("star", &o, &bytes, &error), MASKC_BAD_INPUT);
        assert_non_null(strstr(error.text, MACHINE_CAP "="));
        assert_non_null(strstr(error.text, wrong[k]));
        assert_null(strchr(error.text, '\n'));
        assert_false(machine_runs("x86-64-v3"));
    }
    cap_restore(before);
}

/* Fails unless these options are refused in all three ways to pass a mask: by name, as bytes and as runs (two layers without entries). */
static void refuse_all_ways(const struct maskc_options *o, const char *text)
{
    enum { LAYERS = 2, N = 8 };
    static const uint8_t bits[LAYERS * N * N];
    static const uint64_t rows[LAYERS * N + 1];
    for (int way = 0; way < 3; way++) {
        struct maskc_bytes bytes = {0};
        struct maskc_error error = {0};
        const int code = way == 0 ? maskc_compile("star", o, &bytes, &error)
                         : way == 1
                             ? maskc_compile_dense(bits, LAYERS, 1, N, o, &bytes, &error)
                             : maskc_compile_runs(rows, NULL, LAYERS, 1, N, o, &bytes, &error);
        if (code != MASKC_BAD_INPUT || strcmp(error.text, text) != 0)
            fail_msg("way %d: code %d, '%s', not '%s'", way, code, error.text, text);
    }
}

static void wrong_options_are_refused_by_all_functions(void **state)
{
    static const struct {
        struct maskc_options options;
        const char *text;
    } cases[] = {
        {{.dtype = (enum maskc_dtype)7}, "options: dtype is 7; 0..3 is expected"},
        {{.transform = (enum maskc_transform)2}, "options: transform is 2; 0..1 is expected"},
        {{.soft = (enum maskc_soft)3}, "options: soft is 3; 0..2 is expected"},
        {{.align = (enum maskc_align) - 1}, "options: align is -1; 0..1 is expected"},
        {{.unused = 1}, "options: unused is 1; 0 is expected"},
        {{.align = MASKC_ALIGN_END}, "options: align goes with kv_length"},
        {{.hops = 2}, "options: hops is 2, but has_hops is 0"},
        {{.lambda = 0.5F}, "options: lambda is 0.5, but transform is not MASKC_SPARSEGEN"},
        {{.order_length = 8}, "options: order_length is 8, but order is null"},
        {{.heads = 4097}, "--heads 4097 is out of range, 1..4096 is expected"},
        {{.heads = 300000}, "--heads 300000 is out of range, 1..4096 is expected"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct maskc_options o = cases[k].options;
        o.struct_size = sizeof o;
        o.length = 8;
        refuse_all_ways(&o, cases[k].text);
    }
}

/* 65 layers of 4096 heads are refused, whether the mask has 4096 heads or one is repeated. */
static void too_many_heads_in_all_are_refused(void **state)
{
    static const uint8_t bits[65];
    static const uint64_t rows[1];
    const struct maskc_options o = {.heads = 4096};
    struct maskc_bytes bytes = {0};
    struct maskc_error error = {0};
    (void)state;
    assert_int_equal(maskc_compile_dense(bits, 65, 1, 1, &o, &bytes, &error), MASKC_BAD_INPUT);
    assert_string_equal(error.text, "--heads 4096: 65 layers of so many are too many, at most "
                                    "262144 heads in all are expected");
    assert_int_equal(maskc_compile_dense(bits, 65, 4096, 1, NULL, &bytes, &error),
                     MASKC_BAD_INPUT);
    assert_non_null(strstr(error.text, "at most 262144 in all"));
    assert_int_equal(maskc_compile_runs(rows, NULL, 65, 4096, 1, NULL, &bytes, &error),
                     MASKC_BAD_INPUT);
    assert_non_null(strstr(error.text, "at most 262144 in all"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_options_are_defaults),
        cmocka_unit_test(options_reach_the_kernel),
        cmocka_unit_test(a_dense_array_is_a_mask),
        cmocka_unit_test(kernel_files_are_deterministic),
        cmocka_unit_test(compile_errors_have_codes_and_texts),
        cmocka_unit_test(target_lists_are_resolved),
        cmocka_unit_test(a_cap_hides_the_levels_above_it),
        cmocka_unit_test(a_wrong_cap_is_refused),
        cmocka_unit_test(wrong_options_are_refused_by_all_functions),
        cmocka_unit_test(too_many_heads_in_all_are_refused),
    };
    return cmocka_run_group_tests_name("api", tests, api_set_up, api_tear_down);
}
