/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of a launch on the device "cuda" to the mock driver: the tables as uploaded, the launch as the
   caller gave it, kernels phase by phase, and nothing else. */
#include "masks/base/memory.h"
#include "tests/kernels/driver/cuda_fake.h"
#include "tests/runtime/launches.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

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

/* A file with code for CPUs only does not start the driver. The first test, as a process starts it once. */
static void test_cpu_file_starts_no_driver(void **state)
{
    (void)state;
    const struct kernel_case c = {
        "dam-s-example", 70, 0, {.dtype = ABI_F32, .head_dim = 16}, .target = "x86-64-v2"};
    struct maskc_kernel *k = NULL;
    struct error e = {0};
    uint64_t size;
    uint8_t *bytes = fixture_file(&c, NULL, NULL, &size);
    assert_int_equal(kernel_load(bytes, size, "x.mkb", NULL, &k, &e),
                     -1); /* there is no code */
    assert_non_null(strstr(e.text, "the code cannot be loaded"));
    assert_int_equal(cuda_fake()->started, 0);
    free(bytes);
}

static void test_load_and_launch(void **state)
{
    (void)state;
    struct fake *f = cuda_fake();
    struct error e = {0};
    struct maskc_kernel *k = cuda_load_example("cuda:1", &e);
    if (!k)
        fail_msg("%s", e.text);
    assert_int_equal(f->modules, 3);
    assert_string_equal(f->image, cuda_units[2]); /* and no byte of another */
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
    cuda_must_hold_nothing(f);
}

/* A launch enqueues on the caller's stream and does nothing else: no more blocks than fit, nothing
   allocated, nothing waited for. Shapes of tensors do not matter to a driver that runs nothing. */
static void test_launch_only_enqueues(void **state)
{
    (void)state;
    static _Alignas(64) float memory[1 << 20];
    struct fake *f = cuda_fake();
    struct error e = {0};
    struct maskc_error failure;
    struct maskc_kernel *k = cuda_load_example("cuda:1", &e);
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
    assert_true(f->running > 0); /* the unloading waits, and only then frees */
    kernel_unload(k);
    cuda_must_hold_nothing(f);
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

/* The launch matches the emitted text: kernels, threads and shared memory of each family,
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
    struct fake *f = cuda_fake();
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
    cuda_must_hold_nothing(f);
}

/* Blocks of the grid for 132 sequences of a mask, of which 396 fit at once. */
static unsigned blocks_for(const char *mask, uint32_t n)
{
    const struct kernel_case c = {
        mask, n, 2, {.dtype = ABI_BF16, .head_dim = 32}, .tiled = true};
    struct fake *f = cuda_fake();
    struct error e = {0};
    struct maskc_kernel *k = NULL;
    uint64_t size;
    uint8_t *bytes = fixture_file(&c, NULL, NULL, &size);
    if (kernel_load(bytes, size, "x.mkb", "cuda", &k, &e) < 0)
        fail_msg("%s: %s", mask, e.text);
    static _Alignas(64) float memory[1 << 10];
    struct maskc_error failure;
    struct maskc_launch x =
        launch_over_one((struct maskc_tensor){memory, (int64_t)n * 64, 64, 32}, memory);
    x.batch = 132;
    x.workspace_bytes = maskc_workspace_bytes(k, &x);
    x.workspace = memory_aligned(x.workspace_bytes + 1, 1);
    if (maskc_run(k, &x, &failure))
        fail_msg("%s: %s", mask, failure.text);
    free(x.workspace);
    kernel_unload(k);
    free(bytes);
    cuda_must_hold_nothing(f);
    return f->grid;
}

/* Five waves if works differ in cost, or a block for each of fewer works; else one wave. */
static void test_waves(void **state)
{
    (void)state;
    assert_int_equal(blocks_for("window(40)", 1280), 396);
    assert_int_equal(blocks_for("causal", 640), 132 * 2 * 5);
    assert_int_equal(blocks_for("causal", 1280), 5 * 396);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_file_starts_no_driver),
        cmocka_unit_test(test_load_and_launch),
        cmocka_unit_test(test_launch_only_enqueues),
        cmocka_unit_test(test_phases_as_recorded),
        cmocka_unit_test(test_waves),
    };
    if (argc != 2) {
        print_error("usage: cuda_launch_test FOLDER, where the fake libcuda.so.1 is\n");
        return 2;
    }
    return cuda_has_fake()
               ? cmocka_run_group_tests_name("cuda, launches, fake driver", tests, NULL, NULL)
               : cuda_run_with_fake(argv, argv[1]);
}
