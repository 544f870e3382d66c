/* SPDX-License-Identifier: Apache-2.0 */
/* maskc.h on this machine's CPU, from options to a loaded kernel: what callers see. */
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "runtime/kernel.h"
#include "tests/runtime/launches.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct kernel_request plain = {.head_dim = 64};
static char cache[] = "/tmp/maskc-api-test-XXXXXX";

/* ---- compile ---- */

static struct maskc_bytes compile(const char *mask, struct maskc_options o)
{
    struct maskc_bytes bytes = {0};
    struct maskc_error error = {0};
    o.struct_size = sizeof o;
    o.cache_dir = cache;
    if (maskc_compile(mask, &o, &bytes, &error))
        fail_msg("%s: %s", mask, error.text);
    return bytes;
}

static void zeroed_options_are_defaults(void **state)
{
    (void)state;
    struct maskc_bytes bytes = compile("star", (struct maskc_options){.length = 96});
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
    struct maskc_bytes bytes = compile("window(2)", o);
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
    struct maskc_options o = {.cache_dir = cache};
    struct maskc_bytes dense = {0};
    assert_int_equal(maskc_compile_dense(bits, 1, HEADS, N, &o, &dense, NULL), 0);
    struct maskc_bytes named =
        compile("window(2)", (struct maskc_options){.length = N, .heads = HEADS});
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
    struct maskc_bytes cached = compile("longformer", o), again = compile("longformer", o);
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
        {"window(2)", {.length = 8, .dtype = (enum maskc_dtype)9}, "dtype"},
        {"window(2)", {.length = 8, .transform = (enum maskc_transform)5}, "transform"},
        {"window(2)", {.length = 8, .soft = (enum maskc_soft)3}, "soft"},
        {"window(2)", {.length = 8, .transform = MASKC_SPARSEGEN, .lambda = 1}, "lambda"},
        {"window(2)", {.length = 8, .machine = "abacus"}, "abacus"},
        {"window(2)", {.length = 8, .machine = "h100"}, "h100"},
        {"nothere.npy", {0}, "nothere.npy"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct maskc_options o = cases[k].options;
        struct maskc_bytes bytes = {(uint8_t *)"x", 1};
        struct maskc_error error = {0};
        o.cache_dir = cache;
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

/* ---- load ---- */

static void load_errors_have_codes_and_texts(void **state)
{
    (void)state;
    struct maskc_bytes bytes = compile("star", (struct maskc_options){.length = 32});
    struct maskc_kernel *kernel = NULL;
    struct maskc_error error = {0};
    assert_int_equal(maskc_load("/nonexistent.mkb", NULL, &kernel, &error), MASKC_BAD_INPUT);
    assert_non_null(strstr(error.text, "/nonexistent.mkb"));
    assert_int_equal(maskc_load("/tmp", NULL, &kernel, &error), MASKC_BAD_INPUT);
    assert_int_equal(maskc_load(NULL, NULL, &kernel, &error), MASKC_BAD_INPUT);
    assert_int_equal(maskc_load_memory(NULL, 0, NULL, &kernel, &error), MASKC_BAD_INPUT);
    assert_int_equal(maskc_load_memory(bytes.data, bytes.size, "tpu", &kernel, &error),
                     MASKC_BAD_INPUT);
    assert_non_null(strstr(error.text, "unknown device 'tpu'"));
    assert_int_equal(maskc_load_memory(bytes.data, bytes.size, "cpu:1", &kernel, &error),
                     MASKC_BAD_INPUT);
    assert_int_equal(maskc_load_memory(bytes.data, bytes.size, "emulated", &kernel, &error),
                     MASKC_UNAVAILABLE);
    assert_int_equal(maskc_load_memory(bytes.data, bytes.size - 1, NULL, &kernel, &error),
                     MASKC_BAD_INPUT);
    assert_null(kernel);
    maskc_bytes_free(&bytes);
}

/* A kernel file whose code is no code: an error, not a crash. */
static void code_that_cannot_be_loaded_is_an_error(void **state)
{
    (void)state;
    struct maskc_bytes bytes = compile("star", (struct maskc_options){.length = 32});
    struct artifact *a;
    struct maskc_kernel *kernel = NULL;
    struct maskc_error error = {0};
    assert_int_equal(artifact_read(bytes.data, bytes.size, "FILE", &a, NULL), 0);
    const uint8_t *code = a->target[0].image[0].bytes;
    uint64_t size;
    a->target[0].image[0] = (struct code_image){(const uint8_t *)"garbage garbage garbage", 20};
    uint8_t *forged = artifact_write(a, &size);
    assert_true(maskc_load_memory(forged, size, "cpu", &kernel, &error) != MASKC_OK);
    assert_true(strlen(error.text) > 0);
    free(forged);
    a->target[0].image[0] = (struct code_image){code, 100}; /* the head of an object, no more */
    forged = artifact_write(a, &size);
    assert_true(maskc_load_memory(forged, size, "cpu", &kernel, &error) != MASKC_OK);
    free(forged);
    assert_null(kernel);
    artifact_destroy(a);
    maskc_bytes_free(&bytes);
}

/* ---- files ---- */

static void files_are_saved_whole(void **state)
{
    (void)state;
    struct maskc_bytes bytes = compile("star", (struct maskc_options){.length = 32});
    struct maskc_error error = {0};
    struct maskc_kernel *kernel;
    char path[128];
    snprintf(path, sizeof path, "%s/star.mkb", cache);
    assert_int_equal(maskc_bytes_save(&bytes, path, NULL), 0);
    assert_int_equal(maskc_load(path, "cpu", &kernel, NULL), 0);
    maskc_kernel_destroy(kernel);
    unlink(path);
    assert_int_equal(maskc_bytes_save(&bytes, "/proc/nonexistent/x.mkb", &error),
                     MASKC_BAD_INPUT);
    assert_int_equal(maskc_bytes_save(NULL, path, &error), MASKC_BAD_INPUT);
    assert_int_equal(maskc_bytes_save(&bytes, NULL, &error), MASKC_BAD_INPUT);
    maskc_bytes_free(&bytes);
}

/* ---- targets ---- */

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

/* ---- launch ---- */

enum { SHORE_BYTES = 128 * 64 * 2 }; /* whole pages */

/* Memory with none before it or behind it, of equal numbers. */
static void *shore(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *map =
        mmap(NULL, SHORE_BYTES + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED && SHORE_BYTES % page == 0);
    assert_int_equal(mprotect(map + page, SHORE_BYTES, PROT_READ | PROT_WRITE), 0);
    memset(map + page, 0x3f, SHORE_BYTES);
    return map + page;
}

static void shore_free(void *x)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap((char *)x - page, SHORE_BYTES + 2 * page);
}

/* Lines that leave the mask at either end: kernels take 16 rows of them at a time. */
static void lines_end_where_tensors_do(void **state)
{
    (void)state;
    const struct maskc_options o = {.length = 128, .dtype = MASKC_BF16};
    struct maskc_bytes bytes = compile("distance(1,3)", o);
    struct maskc_kernel *kernel;
    struct maskc_tensor t[TENSORS] = {{0}};
    float lse[128];
    assert_int_equal(maskc_load_memory(bytes.data, bytes.size, "cpu", &kernel, NULL), 0);
    for (size_t k = 0; k < TENSORS; k++)
        t[k].data = shore();
    memset(t[T_O].data, 0xff, SHORE_BYTES);
    launch_both(kernel, launch_over(t, lse));
    assert_memory_equal(t[T_O].data, t[T_V].data, SHORE_BYTES); /* a mean of equal numbers */
    for (size_t k = 0; k < TENSORS; k++)
        shore_free(t[k].data);
    maskc_kernel_destroy(kernel);
    maskc_bytes_free(&bytes);
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(cache) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    struct cache *c = cache_open(cache);
    cache_clear(c);
    cache_close(c);
    return rmdir(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_options_are_defaults),
        cmocka_unit_test(options_reach_the_kernel),
        cmocka_unit_test(a_dense_array_is_a_mask),
        cmocka_unit_test(kernel_files_are_deterministic),
        cmocka_unit_test(compile_errors_have_codes_and_texts),
        cmocka_unit_test(load_errors_have_codes_and_texts),
        cmocka_unit_test(code_that_cannot_be_loaded_is_an_error),
        cmocka_unit_test(files_are_saved_whole),
        cmocka_unit_test(target_lists_are_resolved),
        cmocka_unit_test(lines_end_where_tensors_do),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
