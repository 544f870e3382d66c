/* SPDX-License-Identifier: Apache-2.0 */
/* The device "cuda" without a GPU: what it says where there is no driver, and, with the fake
   driver in the loader's path (the test runs itself again with LD_LIBRARY_PATH), what it asks
   of the driver: the tables as uploaded, the launch as the caller gave it, nothing kept after
   any failure. */
#include "masks/base/memory.h"
#include "runtime/compile/compile.h"
#include "tests/runtime/launches.h"
#include "tests/support/cuda_fixture.h"
#include "tests/support/fake_driver.h"
#include "tests/support/test.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const units[] = {"entries: attention_dkv", "entries: attention_dq",
                                    "entries: attention_forward", NULL};

static const struct kernel_case example = {
    "dam-s-example",
    70,
    0,
    {.dtype = ABI_F32, .head_dim = 16, .backward = true, .dropout = true},
    .images = units};

/* ---- no driver ---- */

static void test_no_driver(void **state)
{
    (void)state;
    struct error e = {0};
    struct maskc_kernel *k = NULL;
    uint64_t size;
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL))
        skip(); /* this machine has one */
    uint8_t *bytes = fixture_file(&example, NULL, NULL, &size);
    assert_non_null(strstr(device_cuda.unavailable(), "no NVIDIA driver (libcuda.so.1)"));
    assert_int_equal(kernel_load(bytes, size, "x.mkb", "cuda", &k, &e), -1);
    assert_int_equal(e.kind, ERROR_UNAVAILABLE);
    assert_non_null(strstr(e.text, "no NVIDIA driver (libcuda.so.1)"));
    assert_null(k);
    free(bytes);
}

/* ---- the fake one ---- */

static struct fake *fake(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    struct fake *f = library ? dlsym(library, "fake_driver") : NULL;
    assert_non_null(f);
    return f;
}

static void must_hold_nothing(const struct fake *f)
{
    assert_int_equal(f->contexts, 0);
    assert_int_equal(f->modules, 0);
    assert_int_equal(f->allocations, 0);
    assert_int_equal(f->pushed, 0);
}

static struct maskc_kernel *load_fake(const char *device, struct error *e)
{
    struct maskc_kernel *k = NULL;
    uint64_t size;
    uint8_t *bytes = fixture_file(&example, NULL, NULL, &size);
    if (kernel_load(bytes, size, "x.mkb", device, &k, e) < 0)
        k = NULL;
    free(bytes);
    return k;
}

static void compare_tables(const struct abi_plan *seen, const struct plan_pass *p, uint32_t n)
{
    assert_memory_equal(seen->work, p->work, p->layer_work[0][1] * sizeof *p->work);
    assert_memory_equal(seen->heads, p->heads, p->n_heads * sizeof *p->heads);
    assert_memory_equal(seen->items, p->items, p->n_items * sizeof *p->items);
    assert_memory_equal(seen->pieces, p->pieces, p->n_pieces * sizeof *p->pieces);
    assert_memory_equal(seen->ranges, p->ranges, p->n_ranges * sizeof *p->ranges);
    assert_memory_equal(seen->lines, p->lines, p->n_lines * sizeof *p->lines);
    assert_memory_equal(seen->patterns, p->patterns, p->n_patterns * 32 * sizeof *p->patterns);
    assert_int_equal(seen->works, p->layer_work[0][1]);
    assert_int_equal(seen->max_cols, p->max_cols);
    assert_int_equal(seen->uses, p->uses);
    assert_int_equal(seen->n, n);
}

static void test_load_and_launch(void **state)
{
    (void)state;
    struct fake *f = fake();
    struct error e = {0};
    struct maskc_kernel *k = load_fake("cuda:1", &e);
    if (!k)
        fail_msg("%s", e.text);
    assert_int_equal(f->modules, 3);
    assert_string_equal(f->image, units[2]); /* and no byte of another */
    const struct artifact_plan *p = &k->artifact->plan[0];
    struct problem problem = fixture_problem(k);
    problem.dropout = 0.25;
    struct problem_data *d = problem_inputs(&problem);
    struct trial *t = trial_new(k, &problem, d, true, 0, &e);
    if (!t || trial_run(t, false, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(f->launches, 1);
    assert_int_equal(f->grid, p->forward.layer_work[0][1]); /* fewer than fit */
    assert_int_equal(f->threads, 128);
    assert_int_equal(f->shared, k->target->launch.forward[0].shared_bytes);
    assert_int_equal(f->args.keep_below, 16384);
    compare_tables(&f->args.forward, &p->forward, 70);
    compare_tables(&f->args.transposed, &p->transposed, 70);
    if (trial_run(t, true, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(f->launches, 3);
    trial_destroy(t);
    problem_data_destroy(d);
    problem.batch = 132; /* more than fits at once */
    d = problem_inputs(&problem);
    t = trial_new(k, &problem, d, false, 0, &e);
    if (!t || trial_run(t, false, &e) < 0)
        fail_msg("%s", e.text);
    assert_int_equal(f->grid, 3 * 132);
    trial_destroy(t);
    problem_data_destroy(d);
    kernel_unload(k);
    must_hold_nothing(f);
}

/* A launch enqueues on the caller's stream and does nothing else: no more blocks than fit, nothing
   allocated, nothing waited for. Shapes of tensors do not matter to a driver that runs nothing. */
static void test_launch_only_enqueues(void **state)
{
    (void)state;
    static _Alignas(64) float memory[1 << 20];
    struct fake *f = fake();
    struct error e = {0};
    struct maskc_error failure;
    struct maskc_kernel *k = load_fake("cuda:1", &e);
    if (!k)
        fail_msg("%s", e.text);
    const int64_t heads = k->artifact->mask->heads;
    const struct maskc_tensor t = {memory, 70 * heads * 16, heads * 16, 16};
    for (enum maskc_pass pass = MASKC_FORWARD; pass <= MASKC_BACKWARD; pass++) {
        struct maskc_launch l = launch_over_one(t, memory);
        l.pass = pass;
        l.workspace = memory;
        l.workspace_bytes = sizeof memory;
        l.stream = memory + 64;
        const int waits = f->waits, launches = f->launches, allocations = f->allocations;
        const int phases = (int)(pass == MASKC_FORWARD ? k->target->launch.n_forward
                                                       : k->target->launch.n_backward);
        if (maskc_run(k, &l, &failure))
            fail_msg("%s", failure.text);
        assert_int_equal(f->waits, waits);
        assert_int_equal(f->allocations, allocations);
        assert_int_equal(f->launches, launches + phases);
        assert_ptr_equal(f->stream, memory + 64);
        assert_in_range(f->grid, 1, 3 * 132);
    }
    kernel_unload(k);
    must_hold_nothing(f);
}

static void compare_launches(struct fake *f, const struct phase *p, uint32_t count)
{
    assert_int_equal(f->launches, count);
    for (uint32_t k = 0; k < count; k++) {
        assert_string_equal(f->launched[k].entry, p[k].entry);
        assert_int_equal(f->launched[k].threads, p[k].threads);
        assert_int_equal(f->launched[k].shared, p[k].shared_bytes);
    }
}

/* What the text was made for is what is launched: kernels, threads and shared memory of each family,
   phase by phase. */
static void test_phases_as_recorded(void **state)
{
    (void)state;
    static const struct kernel_case cases[] = {
        {"star", 100, 3, {.dtype = ABI_BF16, .head_dim = 64, .backward = true}},
        {"star",
         300,
         2,
         {.dtype = ABI_F16, .head_dim = 32, .backward = true}}, /* one pass each */
        {"longformer", 1000, 2, {.dtype = ABI_BF16, .head_dim = 64, .backward = true}},
        {"strided", 1000, 2, {.dtype = ABI_TF32, .head_dim = 64, .backward = true}},
    };
    static _Alignas(64) float memory[1 << 10];
    struct fake *f = fake();
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct error e = {0};
        struct maskc_error failure;
        struct maskc_kernel *k = NULL;
        uint64_t size;
        uint8_t *bytes = fixture_file(&cases[c], NULL, NULL, &size);
        if (kernel_load(bytes, size, "x.mkb", "cuda", &k, &e) < 0)
            fail_msg("%s: %s", cases[c].mask, e.text);
        const int64_t row = (int64_t)cases[c].heads * cases[c].request.head_dim;
        const struct maskc_tensor t = {memory, cases[c].n * row, row,
                                       cases[c].request.head_dim};
        const struct launch_record *l = &k->target->launch;
        for (enum maskc_pass pass = MASKC_FORWARD; pass <= MASKC_BACKWARD; pass++) {
            struct maskc_launch x = launch_over_one(t, memory);
            x.pass = pass;
            x.workspace_bytes = maskc_workspace_bytes(k, &x);
            x.workspace = memory_aligned(x.workspace_bytes + 1, 1);
            f->launches = 0;
            if (maskc_run(k, &x, &failure))
                fail_msg("%s: %s", cases[c].mask, failure.text);
            compare_launches(f, pass == MASKC_FORWARD ? l->forward : l->backward,
                             pass == MASKC_FORWARD ? l->n_forward : l->n_backward);
            free(x.workspace);
        }
        kernel_unload(k);
        free(bytes);
    }
    must_hold_nothing(f);
}

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
        {75, NULL},      {80, "sm_80"},   {86, "sm_86"},       {87, "sm_86"},
        {89, "sm_89"},   {90, "sm_90a"},  {100, "sm_100a"},    {103, "compute_80"},
        {120, "sm_120"}, {121, "sm_120"}, {130, "compute_80"},
    };
    enum { TIMES = 5 };
    const struct kernel_case c = {"dam-s-example",
                                  512,
                                  0,
                                  {.dtype = ABI_F32, .head_dim = 64, .backward = true},
                                  .all_chips = true};
    struct fake *f = fake();
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
    must_hold_nothing(f);
}

/* Each call of a load fails in turn: one clear line, and nothing is kept. (Where a call only
   helps to choose, its failure does not stop the load.) */
static void test_each_failure(void **state)
{
    (void)state;
    struct fake *f = fake();
    int failures = 0;
    for (int at = 1; at == 1 || f->calls >= at - 1; at++) {
        struct error e = {0};
        f->calls = 0;
        f->fail_at = at;
        struct maskc_kernel *k = load_fake("cuda:1", &e);
        f->fail_at = 0;
        if (!k) {
            failures++;
            assert_int_equal(e.kind, ERROR_UNAVAILABLE);
            assert_non_null(strstr(e.text, "CUDA_ERROR_INJECTED (asked for by the test)"));
        }
        int calls = f->calls;
        kernel_unload(k);
        f->calls = calls;
        must_hold_nothing(f);
    }
    assert_true(failures > 10);
}

/* An entry that no module has: its name is not made up of another's. */
static void test_missing_entry(void **state)
{
    (void)state;
    struct error e = {0};
    struct kernel_case c = example;
    struct maskc_kernel *k = NULL;
    uint64_t size;
    c.images = units + 1;
    uint8_t *bytes = fixture_file(&c, NULL, NULL, &size);
    assert_int_equal(kernel_load(bytes, size, "x.mkb", "cuda", &k, &e), -1);
    assert_int_equal(e.kind, ERROR_UNAVAILABLE);
    assert_non_null(strstr(e.text, "cuModuleGetFunction failed"));
    must_hold_nothing(fake());
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
        {90, "x86-64-v3", NULL},
    };
    struct fake *f = fake();
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
    assert_null(load_fake("cuda:2", &e));
    assert_non_null(strstr(e.text, "there is no cuda:2, this machine has 2 GPUs"));
    must_hold_nothing(f);
}

/* Code is made, and chosen, for the GPU that is asked for. */
static void test_each_gpu_its_own(void **state)
{
    (void)state;
    struct fake *f = fake();
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
    struct kernel_case c = example;
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
    must_hold_nothing(f);
}

/* ---- */

int main(int argc, char **argv)
{
    const struct CMUnitTest real[] = {
        cmocka_unit_test(test_no_driver),
    };
    const struct CMUnitTest faked[] = {
        cmocka_unit_test(test_load_and_launch),
        cmocka_unit_test(test_launch_only_enqueues),
        cmocka_unit_test(test_phases_as_recorded),
        cmocka_unit_test(test_choice_and_time_of_load),
        cmocka_unit_test(test_each_failure),
        cmocka_unit_test(test_missing_entry),
        cmocka_unit_test(test_targets_and_names),
        cmocka_unit_test(test_each_gpu_its_own),
    };
    if (argc != 2) {
        print_error("usage: cuda_test FOLDER, where the fake libcuda.so.1 is\n");
        return 2;
    }
    if (getenv("MASKC_TEST_FAKE_DRIVER"))
        return cmocka_run_group_tests_name("cuda, fake driver", faked, NULL, NULL);
    int failed = cmocka_run_group_tests_name("cuda, no driver", real, NULL, NULL);
    if (failed)
        return failed;
    setenv("MASKC_TEST_FAKE_DRIVER", "1", 1);
    setenv("LD_LIBRARY_PATH", argv[1], 1);
    execv("/proc/self/exe", argv);
    return 1;
}
