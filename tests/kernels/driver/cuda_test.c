/* SPDX-License-Identifier: Apache-2.0 */
/* The device "cuda" without a GPU: what it says where there is no driver, and, with the fake driver in the loader's
   path, what it loads: which code for which chip, under which name, and nothing kept after any failure.
   cuda_launch_test.c has what it launches. */
#include "runtime/compile/compile.h"
#include "runtime/device/cuda_code.h"
#include "tests/kernels/driver/cuda_fake.h"
#include "tests/support/test.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- no driver ---- */

static void test_no_driver(void **state)
{
    (void)state;
    struct error e = {0};
    struct maskc_kernel *k = NULL;
    uint64_t size;
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))
        skip(); /* this machine has one */
    uint8_t *bytes = fixture_file(&cuda_example, NULL, NULL, &size);
    assert_non_null(strstr(device_cuda.unavailable(), "no NVIDIA driver (libcuda.so.1)"));
    assert_int_equal(kernel_load(bytes, size, "x.mkb", "cuda", &k, &e), -1);
    assert_int_equal(e.kind, ERROR_UNAVAILABLE);
    assert_non_null(strstr(e.text, "no NVIDIA driver (libcuda.so.1)"));
    assert_null(k);
    free(bytes);
}

/* ---- the fake one ---- */

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A file for all chips: which code goes to which, PTX where the chip is newer than all of them, and
   how long that takes without the driver's own part. */
static void test_choice_and_time_of_load(void **state)
{
    (void)state;
    static const struct {
        int capability;
        const char *target; /* null: none */
    } cases[] = {
        {75, NULL},      {80, "sm_80"},   {86, "sm_86"},       {87, "compute_80"},
        {89, "sm_89"},   {90, "sm_90a"},  {100, "sm_100a"},    {103, "compute_80"},
        {120, "sm_120"}, {121, "sm_120"}, {130, "compute_80"},
    };
    enum { TIMES = 5 };
    const struct kernel_case c = {"dam-s-example",
                                  512,
                                  0,
                                  {.dtype = ABI_F32, .head_dim = 64, .backward = true},
                                  .all_chips = true};
    struct fake *f = cuda_fake();
    uint64_t size;
    uint8_t *bytes = fixture_file(&c, NULL, NULL, &size);
    double least = 1;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        f->capability = cases[k].capability;
        for (int time = 0; time < TIMES; time++) {
            struct error e = {0};
            struct maskc_kernel *kernel = NULL;
            double begin = seconds_now();
            int r = kernel_load(bytes, size, "x.mkb", "cuda", &kernel, &e);
            double took = seconds_now() - begin;
            assert_int_equal(r, cases[k].target ? 0 : -1);
            if (!cases[k].target)
                continue;
            assert_string_equal(kernel->target->name, cases[k].target);
            assert_string_equal(fixture_chips[f->image[0] - 'a'], cases[k].target);
            least = took < least ? took : least;
            kernel_unload(kernel);
        }
    }
    f->capability = 86;
    free(bytes);
    print_message("a file of %.1f MB loads in %.2f ms, the driver's part aside\n",
                  (double)size * 1e-6, least * 1e3);
    assert_true(least < 0.02);
    cuda_must_hold_nothing(f);
}

/* Each call of a load fails in turn: one clear line, and nothing is kept. (Where a call only
   helps to choose, its failure does not stop the load.) */
static void test_each_failure(void **state)
{
    (void)state;
    struct fake *f = cuda_fake();
    int failures = 0;
    for (int at = 1; at == 1 || f->calls >= at - 1; at++) {
        struct error e = {0};
        f->calls = 0;
        f->fail_at = at;
        struct maskc_kernel *k = cuda_load_example("cuda:1", &e);
        f->fail_at = 0;
        if (!k) {
            failures++;
            assert_int_equal(e.kind, ERROR_UNAVAILABLE);
            assert_non_null(strstr(e.text, "CUDA_ERROR_INJECTED (asked for by the test)"));
        }
        int calls = f->calls;
        kernel_unload(k);
        f->calls = calls;
        assert_in_range(f->failures, 0, 1);
        f->failures = 0;
        cuda_must_hold_nothing(f);
    }
    assert_true(failures > 10);
}

/* While the caller captures a stream a kernel loads, but unloading leaves its code where it is, since it must not
   wait then. The mock forbids what the thread's mode of capture forbids. */
static void test_captures(void **state)
{
    (void)state;
    struct fake *f = cuda_fake();
    struct error e = {0};
    f->captures = 1;
    struct maskc_kernel *k = cuda_load_example("cuda:1", &e);
    if (!k)
        fail_msg("%s", e.text);
    f->captures = 0;
    kernel_unload(k);
    cuda_must_hold_nothing(f);
    k = cuda_load_example("cuda:1", &e);
    assert_non_null(k);
    void *tables = (void *)(size_t)k->code->tables;
    f->captures = 1;
    kernel_unload(k);
    assert_int_equal(f->failures, 1); /* the wait */
    assert_int_equal(f->modules, 3);
    assert_int_equal(f->allocations, 1);
    free(tables);
    f->captures = f->failures = f->modules = f->allocations = 0;
    cuda_must_hold_nothing(f);
}

/* Nothing is freed or unloaded outside the kernel's context. */
static void test_lost_context(void **state)
{
    (void)state;
    struct fake *f = cuda_fake();
    struct error e = {0};
    struct maskc_kernel *k = cuda_load_example("cuda:1", &e);
    assert_non_null(k);
    void *tables = (void *)(size_t)k->code->tables, *more = k->device->allocate(k->code, 1, &e);
    f->calls = 0;
    f->fail_at = 1;
    k->device->release(k->code, more);
    f->calls = 0;
    kernel_unload(k);
    f->fail_at = 0;
    assert_int_equal(f->failures, 2); /* to enter the context */
    assert_int_equal(f->modules, 3);
    assert_int_equal(f->allocations, 2);
    free(tables);
    free(more);
    f->failures = f->modules = f->allocations = 0;
    cuda_must_hold_nothing(f);
}

/* An entry that no module has: its name is not made up of another's. */
static void test_missing_entry(void **state)
{
    (void)state;
    struct error e = {0};
    struct kernel_case c = cuda_example;
    struct maskc_kernel *k = NULL;
    uint64_t size;
    c.images = cuda_units + 1;
    uint8_t *bytes = fixture_file(&c, NULL, NULL, &size);
    assert_int_equal(kernel_load(bytes, size, "x.mkb", "cuda", &k, &e), -1);
    assert_int_equal(e.kind, ERROR_UNAVAILABLE);
    assert_string_equal(e.text, "cuda: the code for sm_80 has no kernel attention_dkv");
    cuda_must_hold_nothing(cuda_fake());
    free(bytes);
}

static void test_targets_and_names(void **state)
{
    (void)state;
    static const struct {
        int capability;
        const char *better, *worse; /* worse null: `better` does not run */
    } cases[] = {
        {90, "sm_90a", "compute_80"}, {90, "compute_80", "sm_80"}, {89, "sm_89", "sm_86"},
        {89, "sm_86", "sm_80"},       {86, "sm_80", "compute_80"}, {80, "sm_86", NULL},
        {100, "sm_90a", NULL},        {100, "sm_100a", "sm_90a"},  {75, "compute_80", NULL},
        {90, "x86-64-v3", NULL},      {87, "sm_80", NULL},         {87, "sm_86", NULL},
        {87, "sm_87", "compute_80"},  {89, "sm_87", NULL},
    };
    struct fake *f = cuda_fake();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct artifact_target a = {0}, b = {0};
        f->capability = cases[k].capability;
        strcpy(a.name, cases[k].better);
        if (cases[k].worse) {
            strcpy(b.name, cases[k].worse);
            assert_true(device_cuda.prefers(&a, 0) > device_cuda.prefers(&b, 0));
        } else {
            assert_int_equal(device_cuda.prefers(&a, 0), 0);
        }
    }
    f->capability = 86;
    struct text line = {0};
    device_cuda.describe(&line);
    assert_string_equal(text_get(&line),
                        "0: Fake 0, compute capability 8.6; 1: Fake 1, compute "
                        "capability 8.6 (driver for CUDA 13.0)");
    text_finish(&line);
    struct error e = {0};
    assert_null(cuda_load_example("cuda:2", &e));
    assert_non_null(strstr(e.text, "there is no cuda:2, this machine has 2 GPUs"));
    cuda_must_hold_nothing(f);
}

/* Code whose kernels need more shared memory than the GPU gives a block is passed over. */
static void test_shared_memory(void **state)
{
    (void)state;
    static const struct {
        int capability;
        uint32_t bytes;
        bool backward, runs;
    } cases[] = {
        {86, 99 * 1024, false, true},      {86, 99 * 1024 + 1, false, false},
        {89, 163 * 1024, true, false},     {80, 163 * 1024, true, true},
        {80, 163 * 1024 + 1, true, false},
    };
    struct fake *f = cuda_fake();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct artifact_target large = {0}, small = {0};
        struct launch_record *l = &large.launch;
        f->capability = cases[k].capability;
        strcpy(large.name, "sm_80");
        strcpy(small.name, "compute_80");
        l->n_forward = l->n_backward = 2;
        (cases[k].backward ? l->backward : l->forward)[1].shared_bytes = cases[k].bytes;
        const int score = device_cuda.prefers(&large, 0);
        if (cases[k].runs)
            assert_true(score > device_cuda.prefers(&small, 0));
        else
            assert_int_equal(score, 0);
        assert_true(device_cuda.prefers(&small, 0) > 0);
    }
    f->capability = 86;
    cuda_must_hold_nothing(f);
}

/* Code is made, and chosen, for the GPU that is asked for. */
static void test_each_gpu_its_own(void **state)
{
    (void)state;
    struct fake *f = cuda_fake();
    struct error e = {0};
    const struct kernel_request plain = {.dtype = ABI_BF16, .head_dim = 64};
    const struct target *found[4];
    uint32_t count;
    f->second = 90;
    assert_int_equal(targets_resolve("cuda,cuda:1", &plain, found, 4, &count, &e), 0);
    assert_int_equal(count, 2);
    assert_string_equal(found[0]->name, "sm_86");
    assert_string_equal(found[1]->name, "sm_90a");
    assert_int_equal(targets_resolve("cuda:2", &plain, found, 4, &count, &e), -1);
    assert_string_equal(e.text, "there is no cuda:2, this machine has 2 GPUs");
    struct kernel_case c = cuda_example;
    c.all_chips = true;
    for (int k = 0; k < 2; k++) {
        struct maskc_kernel *loaded = NULL;
        uint64_t size;
        uint8_t *bytes = fixture_file(&c, NULL, NULL, &size);
        if (kernel_load(bytes, size, "x.mkb", k ? "cuda:1" : "cuda", &loaded, &e) < 0)
            fail_msg("%s", e.text);
        assert_string_equal(loaded->target->name, k ? "sm_90a" : "sm_86");
        kernel_unload(loaded);
        free(bytes);
    }
    f->second = 0;
    cuda_must_hold_nothing(f);
}

/* "cuda" is the GPU of the caller's context, "cuda:0" always the first one. Launches enter the kernel's context. */
static void test_each_name_its_gpu(void **state)
{
    (void)state;
    static const struct {
        int current; /* as in struct fake */
        const char *device;
        uint32_t ordinal;
        int retained; /* contexts that the kernel holds */
    } cases[] = {
        {0, "cuda", 0, 1},   {0, "cuda:1", 1, 1}, {1, "cuda", 0, 0},   {1, "cuda:1", 1, 1},
        {2, "cuda", 1, 0},   {2, NULL, 1, 0},     {2, "cuda:0", 0, 1}, {2, "cuda:1", 1, 0},
        {0, "cuda:0", 0, 1}, {0, NULL, 0, 1},
    };
    struct fake *f = cuda_fake();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct error e = {0};
        struct maskc_info info = {.struct_size = sizeof info};
        f->current = cases[k].current;
        struct maskc_kernel *kernel = cuda_load_example(cases[k].device, &e);
        if (!kernel)
            fail_msg("%s: %s", cases[k].device, e.text);
        maskc_kernel_info(kernel, &info);
        assert_int_equal(info.ordinal, cases[k].ordinal);
        assert_int_equal(f->contexts, cases[k].retained);
        f->entered = -1;
        assert_int_equal(kernel->device->sync(kernel->code, &e), 0);
        assert_int_equal(f->entered, cases[k].ordinal);
        kernel_unload(kernel);
        f->current = 0;
        cuda_must_hold_nothing(f);
    }
}

/* ---- */

int main(int argc, char **argv)
{
    const struct CMUnitTest real[] = {
        cmocka_unit_test(test_no_driver),
    };
    const struct CMUnitTest faked[] = {
        cmocka_unit_test(test_choice_and_time_of_load),
        cmocka_unit_test(test_each_failure),
        cmocka_unit_test(test_captures),
        cmocka_unit_test(test_lost_context),
        cmocka_unit_test(test_missing_entry),
        cmocka_unit_test(test_targets_and_names),
        cmocka_unit_test(test_shared_memory),
        cmocka_unit_test(test_each_gpu_its_own),
        cmocka_unit_test(test_each_name_its_gpu),
    };
    if (argc != 2) {
        print_error("usage: cuda_test FOLDER, where the fake libcuda.so.1 is\n");
        return 2;
    }
    if (cuda_has_fake())
        return cmocka_run_group_tests_name("cuda, fake driver", faked, NULL, NULL);
    int failed = cmocka_run_group_tests_name("cuda, no driver", real, NULL, NULL);
    return failed ? failed : cuda_run_with_fake(argv, argv[1]);
}
