/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC through maskc: PTX, errors, and the cubin reader on bytes that are no cubin. What NVRTC makes of
   the templates is for gates_test. */
#include "gen/emit/emit.h"
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/cubin.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after the standard ones */
#include <cmocka.h>

static bool has_nvrtc(void)
{
    struct error e = {0};
    if (nvrtc_version(&e)[0])
        return true;
    print_message("skipped: %s\n", e.text);
    return false;
}

static void test_ptx(void **state)
{
    (void)state;
    struct error e = {0};
    if (!has_nvrtc())
        skip();
    const struct target *t = target_find("compute_80", &e);
    assert_non_null(t);
    const struct features f = {.dtype = ABI_F32, .head_dim = 64, .backward = true};
    struct source *s = emit_source(t, &f);
    struct binary b = {0};
    if (nvrtc_compile(s, t, &b, &e) < 0)
        fail_msg("%s", e.text);
    assert_non_null(strstr((const char *)b.bytes, ".entry attention_forward"));
    assert_non_null(strstr((const char *)b.bytes, ".target sm_80"));
    binary_finish(&b);
    source_destroy(s);
}

static void test_errors_of_nvrtc(void **state)
{
    (void)state;
    const struct source_file files[] = {{"a.cu", "#include \"b.h\"\nint main;\n"},
                                        {"b.h", "this is no C;\n"}};
    struct source s = {.files = files, .n_files = 2};
    struct binary b = {0};
    struct error e = {0};
    if (!has_nvrtc())
        skip();
    assert_int_equal(nvrtc_compile(&s, target_find("sm_80", &e), &b, &e), -1);
    assert_non_null(strstr(e.text, "cannot compile the kernel for sm_80"));
    assert_non_null(strstr(e.text, "b.h(1): error"));
    assert_null(b.bytes);
}

/* Every prefix and every byte changed: never an access outside (the sanitizers look on). */
static void test_reader_on_garbage(void **state)
{
    (void)state;
    struct error e = {0};
    struct kernel_resources r[ARTIFACT_MAX_KERNELS];
    uint32_t count;
    assert_int_equal(
        cubin_resources((const uint8_t *)"", 0, r, ARTIFACT_MAX_KERNELS, &count, &e), -1);
    assert_int_equal(
        cubin_resources((const uint8_t *)"\177ELF", 4, r, ARTIFACT_MAX_KERNELS, &count, &e),
        -1);
    assert_non_null(strstr(e.text, "not a cubin"));
    if (!nvrtc_version(&e)[0])
        return;
    const struct target *t = target_find("sm_80", &e);
    const struct source_file file = {
        "k.cu", "extern \"C\" __global__ void k(float *x) { x[threadIdx.x] += 1; }"};
    struct source s = {.files = &file, .n_files = 1};
    struct binary b = {0};
    assert_int_equal(nvrtc_compile(&s, t, &b, &e), 0);
    assert_int_equal(b.n_kernels, 1);
    assert_string_equal(b.kernel[0].entry, "k");
    for (uint64_t size = 0; size < b.size; size++) {
        uint8_t *copy = memory_copy(b.bytes, size);
        cubin_resources(copy, size, r, ARTIFACT_MAX_KERNELS, &count, &e);
        copy = memory_resize(copy, b.size, 1);
        memcpy(copy, b.bytes, b.size);
        copy[size] ^= (uint8_t)(1 + size % 255);
        cubin_resources(copy, b.size, r, ARTIFACT_MAX_KERNELS, &count, &e);
        free(copy);
    }
    binary_finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ptx),
        cmocka_unit_test(test_errors_of_nvrtc),
        cmocka_unit_test(test_reader_on_garbage),
    };
    return cmocka_run_group_tests_name("cubin", tests, NULL, NULL);
}
