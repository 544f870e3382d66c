/* SPDX-License-Identifier: Apache-2.0 */
/* maskc.h on this machine's CPU, from a kernel file to a launch: what callers see. */
#include "runtime/artifact/artifact.h"
#include "tests/runtime/api_compile.h"
#include "tests/runtime/launches.h"
#include "tests/support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void load_errors_have_codes_and_texts(void **state)
{
    (void)state;
    struct maskc_bytes bytes = api_compile("star", (struct maskc_options){.length = 32});
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
    assert_string_equal(error.text, "there is one device 'cpu', not 'cpu:1'");
    assert_int_equal(maskc_load_memory(bytes.data, bytes.size, "emulated", &kernel, &error),
                     MASKC_UNAVAILABLE);
    assert_int_equal(maskc_load_memory(bytes.data, bytes.size - 1, NULL, &kernel, &error),
                     MASKC_BAD_INPUT);
    assert_null(kernel);
    maskc_bytes_free(&bytes);
}

/* A kernel file above the cap is refused as on a machine without the level, a wrong cap as bad input. */
static void a_cap_refuses_higher_targets(void **state)
{
    (void)state;
    const char *found = getenv("MASKC_MAX_CPU");
    char *before = found ? strdup(found) : NULL;
    struct maskc_bytes bytes = api_compile(
        "star", (struct maskc_options){
                    .length = 32, .head_dim = 16, .forward_only = 1, .targets = "x86-64-v3"});
    struct maskc_kernel *kernel = NULL;
    struct maskc_error error = {0};
    setenv("MASKC_MAX_CPU", "x86-64-v2", 1);
    for (int any = 0; any < 2; any++) {
        assert_int_equal(
            maskc_load_memory(bytes.data, bytes.size, any ? NULL : "cpu", &kernel, &error),
            MASKC_UNAVAILABLE);
        assert_non_null(strstr(error.text, "x86-64-v3; MASKC_MAX_CPU is x86-64-v2"));
    }
    setenv("MASKC_MAX_CPU", "avx", 1);
    assert_int_equal(maskc_load_memory(bytes.data, bytes.size, NULL, &kernel, &error),
                     MASKC_BAD_INPUT);
    assert_non_null(strstr(error.text, "MASKC_MAX_CPU=avx"));
    assert_null(kernel);
    if (before)
        setenv("MASKC_MAX_CPU", before, 1);
    else
        unsetenv("MASKC_MAX_CPU");
    free(before);
    maskc_bytes_free(&bytes);
}

/* A kernel file whose code is no code: an error, not a crash. */
static void code_that_cannot_be_loaded_is_an_error(void **state)
{
    (void)state;
    struct maskc_bytes bytes = api_compile("star", (struct maskc_options){.length = 32});
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

static void files_are_saved_whole(void **state)
{
    (void)state;
    struct maskc_bytes bytes = api_compile("star", (struct maskc_options){.length = 32});
    struct maskc_error error = {0};
    struct maskc_kernel *kernel;
    char path[128];
    snprintf(path, sizeof path, "%s/star.mkb", api_cache);
    assert_int_equal(maskc_bytes_save(&bytes, path, NULL), 0);
    assert_int_equal(maskc_load(path, "cpu:0", &kernel, NULL), 0); /* a torch.device's name */
    maskc_kernel_destroy(kernel);
    unlink(path);
    assert_int_equal(maskc_bytes_save(&bytes, "/proc/nonexistent/x.mkb", &error),
                     MASKC_BAD_INPUT);
    assert_int_equal(maskc_bytes_save(NULL, path, &error), MASKC_BAD_INPUT);
    assert_int_equal(maskc_bytes_save(&(struct maskc_bytes){0}, path, &error), MASKC_BAD_INPUT);
    assert_int_equal(maskc_bytes_save(&bytes, NULL, &error), MASKC_BAD_INPUT);
    maskc_bytes_free(&bytes);
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
    struct maskc_bytes bytes = api_compile("distance(1,3)", o);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_errors_have_codes_and_texts),
        cmocka_unit_test(a_cap_refuses_higher_targets),
        cmocka_unit_test(code_that_cannot_be_loaded_is_an_error),
        cmocka_unit_test(files_are_saved_whole),
        cmocka_unit_test(lines_end_where_tensors_do),
    };
    return cmocka_run_group_tests_name("api, loading", tests, api_set_up, api_tear_down);
}
