/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC through maskc: PTX, errors, and the cubin reader on bytes that are no cubin. What NVRTC makes of
   the templates is for resource_budgets_test. */
#include "gen/emit/emit.h"
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/cubin.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

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
    const struct kernel_config f = {
        .request = {.dtype = ABI_F32, .head_dim = 64, .backward = true}};
    struct source *s = emit_source(t, &f);
    struct binary b = {0};
    if (nvrtc_compile(s, t, &b, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(b.n_images, 3);
    for (uint32_t k = 0; k < b.n_images; k++) {
        static const char *const entries[] = {".entry attention_dkv", ".entry attention_dq",
                                              ".entry attention_forward"};
        assert_non_null(strstr((const char *)b.image[k].bytes, entries[k]));
        for (uint32_t other = 0; other < b.n_images; other++)
            assert_int_equal(image_names(&b.image[other], entries[k] + strlen(".entry ")),
                             other == k);
        assert_non_null(strstr((const char *)b.image[k].bytes, ".target sm_80"));
    }
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
    assert_int_equal(b.n_images, 0);
}

/* Units that stand beside one another: each sees all other files, kernels come in the order of their
   names, and the first error is that of the first unit, whoever ended first. */
static void test_units(void **state)
{
    (void)state;
    struct source_file files[] = {
        {"all.cu", "#include \"b.cu\"\n#include \"a.cu\"\n"},
        {"b.cu", "#include \"x.h\"\nK beta(X *x) { x[threadIdx.x] += 1; }\n"},
        {"a.cu", "#include \"x.h\"\nK alpha(X *x) { x[threadIdx.x] += 2; }\n"},
        {"x.h", "#define K extern \"C\" __global__ void\ntypedef float X;\n"}};
    struct source s = {.files = files, .n_files = 4, .n_units = 2};
    const struct target *t = target_find("sm_80", NULL);
    struct binary b = {0};
    struct error e = {0};
    if (!has_nvrtc())
        skip();
    assert_int_equal(nvrtc_compile(&s, t, &b, &e), 0);
    assert_int_equal(b.n_images, 2);
    assert_int_equal(b.n_kernels, 2);
    assert_string_equal(b.kernel[0].entry, "alpha");
    assert_string_equal(b.kernel[1].entry, "beta");
    for (int k = 0; k < 2; k++) {
        assert_int_equal(image_names(&b.image[k], "beta"), k == 0);
        assert_int_equal(image_names(&b.image[k], "alpha"), k == 1);
        assert_false(image_names(&b.image[k], "alph") || image_names(&b.image[k], "eta"));
    }
    binary_finish(&b);
    files[1].text = "first error\n";
    files[2].text = "second error\n";
    assert_int_equal(nvrtc_compile(&s, t, &b, &e), -1);
    assert_non_null(strstr(e.text, "b.cu(1): error"));
    assert_null(strstr(e.text, "a.cu"));
    assert_int_equal(b.n_images, 0);
}

/* Every prefix and every byte changed: never an access outside (the sanitizers look on). */
static void test_reader_on_garbage(void **state)
{
    (void)state;
    struct error e = {0};
    struct kernel_resources r[ARTIFACT_MAX_KERNELS];
    uint32_t count = 0;
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
    const struct code_image *all = &b.image[0];
    for (uint64_t size = 0; size < all->size; size++) {
        uint8_t *copy = memory_copy(all->bytes, size);
        count = 0;
        cubin_resources(copy, size, r, ARTIFACT_MAX_KERNELS, &count, &e);
        copy = memory_resize(copy, all->size, 1);
        memcpy(copy, all->bytes, all->size);
        copy[size] ^= (uint8_t)(1 + size % 255);
        count = 0;
        cubin_resources(copy, all->size, r, ARTIFACT_MAX_KERNELS, &count, &e);
        free(copy);
    }
    binary_finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ptx),
        cmocka_unit_test(test_errors_of_nvrtc),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_reader_on_garbage),
    };
    return cmocka_run_group_tests_name("cubin", tests, NULL, NULL);
}
