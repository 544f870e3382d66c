/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA templates compiled by NVRTC, without a GPU: no spills, and registers, shared memory
   and code within budgets. `cubin_test --all` takes all shapes and targets, else two shapes for
   sm_80 and sm_90a. And the cubin reader on bytes that are no cubin. */
#include "gen/emit/emit.h"
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/cubin.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after the standard ones */
#include <cmocka.h>

/* clang-format off */
static const char *const all_targets[] = {"sm_80", "sm_90a", "sm_86", "sm_89",
                                          "sm_100a", "sm_120", NULL};
enum { USUAL_TARGETS = 2, MAX_SHARED = 99 * 1024, RESERVED_SHARED = 1024 };

/* Budgets of an entry: registers (of 255) and code in KiB. */
struct budget {
    const char *entry;
    uint32_t registers, code_kib;
};

static const struct gate {
    struct features features;
    struct budget budget[3]; /* by name: dkv, dq, forward */
} gates[] = {
    {{ABI_F32, ABI_SOFTMAX, 0, 64, false, true},
     {{"attention_dkv", 160, 40}, {"attention_dq", 136, 28}, {"attention_forward", 120, 26}}},
    {{ABI_F32, ABI_SPARSEGEN, -4, 256, true, true},
     {{"attention_dkv", 255, 84}, {"attention_dq", 216, 72}, {"attention_forward", 216, 64}}},
    {{ABI_F32, ABI_SOFTMAX, 0, 256, true, true},
     {{"attention_dkv", 255, 72}, {"attention_dq", 216, 48}, {"attention_forward", 216, 48}}},
    {{ABI_F32, ABI_SPARSEGEN, -4, 64, true, true},
     {{"attention_dkv", 160, 56}, {"attention_dq", 136, 48}, {"attention_forward", 128, 44}}},
    {{ABI_BF16, ABI_SOFTMAX, 0, 128, true, true},
     {{"attention_dkv", 200, 72}, {"attention_dq", 168, 64}, {"attention_forward", 152, 48}}},
    {{ABI_BF16, ABI_SPARSEGEN, -4, 200, false, true},
     {{"attention_dkv", 255, 96}, {"attention_dq", 200, 72}, {"attention_forward", 200, 64}}},
};
/* clang-format on */

/* The usual run takes the default shape and the largest; each compilation takes a second or
   two. */
enum { GATES = sizeof gates / sizeof *gates, USUAL_GATES = 2 };

static bool has_nvrtc(void)
{
    struct error e = {0};
    if (nvrtc_version(&e)[0])
        return true;
    print_message("skipped: %s\n", e.text);
    return false;
}

/* The newest targets get more registers from ptxas, and the largest dkv kernels spill a little there. */
static bool is_newest(const char *target)
{
    return !strcmp(target, "sm_100a") || !strcmp(target, "sm_120");
}

static void check_kernel(const char *target, const struct kernel_resources *r,
                         const struct budget *b)
{
    print_message("%-8s %-18s %3u registers, %u spilled, %6u shared, %6u code\n", target,
                  r->entry, r->registers, r->spill_bytes, r->shared_bytes, r->code_bytes);
    assert_string_equal(r->entry, b->entry);
    const uint32_t more = is_newest(target) ? 16 : 0;
    assert_true(r->registers >= 16 && r->registers <= b->registers + more);
    assert_true(r->spill_bytes <= (b->registers == 255 ? more : 0));
    assert_true(r->shared_bytes >= 1024 && r->shared_bytes <= MAX_SHARED + RESERVED_SHARED);
    assert_true(r->code_bytes >= 1024 && r->code_bytes <= b->code_kib * 1024);
}

static void check_gate(const char *name, const struct gate *g)
{
    struct error e = {0};
    const struct target *t = target_find(name, &e);
    assert_non_null(t);
    struct source *s = emit_source(t, &g->features);
    struct binary b = {0};
    if (nvrtc_compile(s, t, &b, &e) < 0)
        fail_msg("%s", e.text);
    assert_memory_equal(b.bytes, "\177ELF", 4);
    assert_int_equal(b.n_kernels, 3);
    print_message("D %u, %s, %s, dropout %d\n", g->features.head_dim,
                  dtype_name(g->features.dtype),
                  g->features.transform ? "sparsegen" : "softmax", g->features.dropout);
    for (uint32_t k = 0; k < 3; k++)
        check_kernel(name, &b.kernel[k], &g->budget[k]);
    binary_finish(&b);
    source_destroy(s);
}

static void test_gates(void **state)
{
    const bool all = *state != NULL;
    if (!has_nvrtc())
        skip();
    for (uint32_t t = 0; all_targets[t] && (all || t < USUAL_TARGETS); t++)
        for (uint32_t g = 0; g < (all ? GATES : USUAL_GATES); g++)
            check_gate(all_targets[t], &gates[g]);
}

static void test_ptx(void **state)
{
    (void)state;
    struct error e = {0};
    if (!has_nvrtc())
        skip();
    const struct target *t = target_find("compute_80", &e);
    assert_non_null(t);
    struct source *s = emit_source(t, &gates[0].features);
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

int main(int argc, char **argv)
{
    bool all = argc > 1 && !strcmp(argv[1], "--all");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_gates, all ? &all : NULL),
        cmocka_unit_test(test_ptx),
        cmocka_unit_test(test_errors_of_nvrtc),
        cmocka_unit_test(test_reader_on_garbage),
    };
    return cmocka_run_group_tests_name("cubin", tests, NULL, NULL);
}
