/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of phases that receive struct hopper_args, on the mock driver: what kernels receive, that a repeated launch only
   enqueues, errors of the driver; with "old" behind FOLDER, a driver without tensor maps. */
#include "gen/plan/plan.h"
#include "masks/input/load.h"
#include "runtime/compile/compile.h"
#include "runtime/device/cuda_driver.h"
#include "tests/kernels/driver/cuda_fake.h"
#include "tests/runtime/launches.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

enum { N = 256, HEADS = 4, KEY_HEADS = 2, DIM = 64, BATCH = 2, GROUPS = 5 };

static const struct kernel_case example = {
    "longformer", N, HEADS, {.dtype = ABI_BF16, .head_dim = DIM, .backward = true}};

/* ---- a kernel whose phases receive steps ---- */

static struct abi_group groups[GROUPS] = {{.step = 3}, {.step = 4}};
static struct abi_step steps[2] = {{.times = 1}, {.times = 7}};
static struct abi_work work[GROUPS] = {{0, 3}, {1, 2}};
static uint64_t layers[1][2] = {{1, GROUPS - 1}};
static const struct plan_steps tables = {.groups = groups,
                                         .steps = steps,
                                         .work = work,
                                         .n_groups = GROUPS,
                                         .n_steps = 2,
                                         .n_work = GROUPS,
                                         .layer_work = layers,
                                         .slots = 2};

static void change_phases(struct launch_record *l)
{
    l->forward[0].arguments = PHASE_HOPPER_FORWARD;
    l->backward[0].arguments = PHASE_HOPPER_DQ;
    l->backward[1].arguments = PHASE_HOPPER_DKV;
}

/* Loads its code anew, with steps and phases of cuda_hopper. */
static int make_hopper(struct maskc_kernel *k, struct error *e)
{
    struct artifact *a = k->artifact;
    k->device->unload(k->code);
    k->code = NULL;
    for (int pass = 0; pass < PASSES; pass++)
        a->plan[0].steps[pass] = tables;
    change_phases(&a->target[0].launch);
    return k->device->load(a, k->target, DEVICE_CURRENT, &k->code, e);
}

static struct maskc_kernel *load_plain(uint32_t kv_heads)
{
    struct error e = {0};
    struct kernel_case c = example;
    struct maskc_kernel *k = NULL;
    uint64_t size;
    c.tiled = true;
    c.request.kv_heads = kv_heads;
    uint8_t *bytes = fixture_file(&c, NULL, NULL, &size);
    if (kernel_load(bytes, size, "x.mkb", "cuda", &k, &e) < 0)
        fail_msg("%s", e.text);
    free(bytes);
    return k;
}

static void unload(struct maskc_kernel *k)
{
    memset(k->artifact->plan[0].steps, 0, sizeof k->artifact->plan[0].steps);
    kernel_unload(k);
}

/* ---- launches ---- */

static _Alignas(64) char tensors[TENSORS][64]; /* nobody reads them */
static _Alignas(64) char workspace[4 << 20];

static struct maskc_launch launch_of(enum maskc_pass pass)
{
    struct maskc_tensor t[TENSORS];
    for (int k = 0; k < TENSORS; k++)
        t[k].data = tensors[k];
    for (int k = 0; k < TENSORS; k++)
        t[k].batch = t[k].row = t[k].head = 0;
    struct maskc_launch l = launch_over(t, (float *)(void *)workspace);
    l.batch = BATCH;
    l.pass = pass;
    l.workspace = workspace;
    l.workspace_bytes = sizeof workspace;
    return l;
}

static void run(const struct maskc_kernel *k, const struct maskc_launch *l)
{
    struct maskc_error failure;
    cuda_fake()->launches = 0;
    if (maskc_run(k, l, &failure))
        fail_msg("%s", failure.text);
}

static void check_map(const struct tensor_map *m, const void *address, unsigned heads,
                      unsigned box)
{
    struct fake_map f;
    memcpy(&f, m, sizeof f);
    assert_int_equal(f.address, (size_t)address);
    assert_int_equal(f.type, 9);      /* bfloat16 */
    assert_int_equal(f.swizzle, 3);   /* 128 bytes */
    assert_int_equal(f.promotion, 3); /* 256 bytes */
    const unsigned long long extent[] = {DIM, heads, N, BATCH},
                             stride[] = {2 * DIM, 2 * DIM * heads, 2 * DIM * heads * N};
    const unsigned boxes[] = {64, 1, box, 1};
    assert_memory_equal(f.extent, extent, sizeof extent);
    assert_memory_equal(f.stride, stride, sizeof stride);
    assert_memory_equal(f.box, boxes, sizeof boxes);
}

static void check_steps(const struct abi_steps *s)
{
    assert_memory_equal(s->groups, groups, sizeof groups);
    assert_memory_equal(s->steps, steps, sizeof steps);
    assert_memory_equal(s->work, work + 1, (GROUPS - 1) * sizeof *work);
    assert_int_equal(s->works, GROUPS - 1);
}

static void check_forward(const struct fake *f)
{
    const struct hopper_args *a = &f->hopper_args[0];
    check_steps(&a->steps);
    check_map(&a->rows[0], tensors[T_Q], HEADS, 64);
    check_map(&a->columns[0].run, tensors[T_K], HEADS, 64);
    check_map(&a->columns[1].tile, tensors[T_V], HEADS, 32);
    check_map(&a->out[0], tensors[T_O], HEADS, 64);
    assert_int_equal(a->a.batch, BATCH);
    assert_ptr_equal(a->a.lse, workspace);
    assert_int_equal(f->grid, (GROUPS - 1) * BATCH);
}

static void check_backward(const struct fake *f)
{
    check_steps(&f->hopper_args[0].steps);
    check_steps(&f->hopper_args[1].steps);
    check_map(&f->hopper_args[0].rows[1], tensors[T_GRAD], HEADS, 64);
    check_map(&f->hopper_args[0].out[0], tensors[T_DQ], HEADS, 64);
    check_map(&f->hopper_args[1].columns[0].row, tensors[T_Q], HEADS, 1);
    check_map(&f->hopper_args[1].out[1], tensors[T_DV], HEADS, 64);
}

/* As a graph captures it: of the driver a repeated launch calls what enters the context, and cuLaunchKernel. */
static void test_launch(void **state)
{
    (void)state;
    struct fake *f = cuda_fake();
    struct error e = {0};
    struct maskc_kernel *k = load_plain(0);
    if (make_hopper(k, &e) < 0)
        fail_msg("%s", e.text);
    f->hopper = 1;
    for (enum maskc_pass pass = MASKC_FORWARD; pass <= MASKC_BACKWARD; pass++) {
        struct maskc_launch l = launch_of(pass);
        const int phases = pass == MASKC_FORWARD ? 1 : 2, maps = pass == MASKC_FORWARD ? 9 : 25;
        f->maps = 0;
        run(k, &l);
        assert_int_equal(f->launches, phases);
        assert_int_equal(f->maps, maps);
        pass == MASKC_FORWARD ? check_forward(f) : check_backward(f);
        f->calls = f->waits = 0;
        run(k, &l);
        assert_int_equal(f->calls, 1 + phases);
        assert_int_equal(f->waits, 0);
        assert_int_equal(f->maps, maps);
        pass == MASKC_FORWARD ? check_forward(f) : check_backward(f);
        l.value.data = tensors[T_K];
        run(k, &l);
        assert_int_equal(f->maps, 2 * maps);
        assert_int_equal(f->waits, 0);
    }
    unload(k);
    f->hopper = 0;
    cuda_must_hold_nothing(f);
}

/* The sums over query heads are a phase with the arguments of every kernel. */
static void test_grouped(void **state)
{
    (void)state;
    struct fake *f = cuda_fake();
    struct error e = {0};
    struct maskc_kernel *k = load_plain(KEY_HEADS);
    if (make_hopper(k, &e) < 0)
        fail_msg("%s", e.text);
    f->hopper = 1;
    const struct maskc_launch l = launch_of(MASKC_BACKWARD);
    run(k, &l);
    assert_int_equal(f->launches, 3);
    assert_string_equal(f->launched[2].entry, "attention_key_heads");
    assert_ptr_equal(f->args.sum_v.data, tensors[T_DV]);
    check_map(&f->hopper_args[1].rows[0], tensors[T_K], KEY_HEADS, 64);
    check_map(&f->hopper_args[1].columns[1].run, tensors[T_GRAD], HEADS, 64);
    unload(k);
    f->hopper = 0;
    cuda_must_hold_nothing(f);
}

static void test_no_steps(void **state)
{
    (void)state;
    struct error e = {0};
    struct maskc_kernel *k = load_plain(0);
    assert_int_equal(make_hopper(k, &e), 0);
    k->device->unload(k->code);
    k->code = NULL;
    k->artifact->plan[0].steps[PASS_DKV] = (struct plan_steps){0};
    assert_int_equal(k->device->load(k->artifact, k->target, DEVICE_CURRENT, &k->code, &e), -1);
    assert_int_equal(e.kind, ERROR_INPUT);
    assert_string_equal(e.text, "attention_dkv receives steps that the plan lacks");
    unload(k);
    cuda_must_hold_nothing(cuda_fake());
}

/* One line, and the next launch encodes what this one could not. */
static void test_driver_fails(void **state)
{
    (void)state;
    struct fake *f = cuda_fake();
    struct error e = {0};
    struct maskc_error failure;
    struct maskc_kernel *k = load_plain(0);
    if (make_hopper(k, &e) < 0)
        fail_msg("%s", e.text);
    f->hopper = 1;
    const struct maskc_launch l = launch_of(MASKC_FORWARD);
    f->calls = 0;
    f->fail_at = 4; /* the context, both maps of Q, then K's */
    assert_int_equal(maskc_run(k, &l, &failure), MASKC_UNAVAILABLE);
    f->fail_at = 0;
    assert_string_equal(failure.text,
                        "launch: tensor map of key: cuda: cuTensorMapEncodeTiled failed: "
                        "CUDA_ERROR_INJECTED (asked for by the test)");
    assert_int_equal(f->failures, 1);
    f->failures = 0;
    run(k, &l);
    check_forward(f);
    unload(k);
    f->hopper = 0;
    cuda_must_hold_nothing(f);
}

/* The row of the GPU here, for code that is made for it. */
static const struct target *target_here(void)
{
    const struct target *found = NULL;
    uint32_t count;
    struct error e = {0};
    cuda_fake()->capability = 90;
    if (targets_resolve("cuda", &example.request, &found, 1, &count, &e) < 0)
        fail_msg("%s", e.text);
    cuda_fake()->capability = 86;
    assert_string_equal(found->name, "sm_90a");
    return found;
}

static void test_target(void **state)
{
    (void)state;
    assert_false(target_here()->no_tensor_maps);
}

/* ---- a driver of CUDA 11.8 ---- */

static void test_old_target(void **state)
{
    (void)state;
    struct error e = {0};
    assert_true(target_here()->no_tensor_maps);
    assert_false(target_find("sm_90a", &e)->no_tensor_maps);
}

static void test_old_driver(void **state)
{
    (void)state;
    struct fake *f = cuda_fake();
    struct error e = {0};
    struct maskc_kernel *k = load_plain(0);
    const struct maskc_launch l = launch_of(MASKC_FORWARD);
    assert_false(cuda_has_tensor_maps());
    run(k, &l); /* needs none */
    assert_int_equal(make_hopper(k, &e), -1);
    assert_int_equal(e.kind, ERROR_UNAVAILABLE);
    assert_string_equal(e.text,
                        "cuda: the code for sm_80 needs tensor maps, which the NVIDIA driver "
                        "for CUDA 11.8 does not make: install one for CUDA 12 or later, or "
                        "compile with --family cuda_tiled");
    unload(k);
    cuda_must_hold_nothing(f);
}

/* The plan for the GPU here says why it leaves the family out. */
static void test_old_plan(void **state)
{
    (void)state;
    struct error e = {0};
    struct text text = {0};
    struct kernel_request r = example.request;
    const struct mask_request dense = {
        .name = "dense", .n = N, .heads = HEADS, MASK_REQUEST_DEFAULTS};
    struct mask *m = mask_load(&dense, NULL, &e);
    r.length = N;
    struct plan *p = plan_build(m, target_here(), &r, machine_find("h100-mma", &e), NULL, &e);
    if (!p)
        fail_msg("%s", e.text);
    plan_print(p, 1, 1, &text);
    assert_string_not_equal(p->config.forward->name, "cuda_hopper");
    assert_non_null(strstr(text_get(&text),
                           "  without cuda_hopper: the NVIDIA driver of this machine has no "
                           "cuTensorMapEncodeTiled; install one for CUDA 12 or later\n"));
    text_finish(&text);
    plan_destroy(p);
    mask_destroy(m);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launch),   cmocka_unit_test(test_grouped),
        cmocka_unit_test(test_no_steps), cmocka_unit_test(test_driver_fails),
        cmocka_unit_test(test_target),
    };
    const struct CMUnitTest old[] = {
        cmocka_unit_test(test_old_driver),
        cmocka_unit_test(test_old_target),
        cmocka_unit_test(test_old_plan),
    };
    if (argc < 2 || argc > 3) {
        print_error("usage: hopper_launch_test FOLDER [old], where the mock libcuda.so.1 is\n");
        return 2;
    }
    if (!cuda_has_fake())
        return cuda_run_with_fake(argv, argv[1]);
    return argc == 3
               ? cmocka_run_group_tests_name("cuda_hopper, old driver", old, NULL, NULL)
               : cmocka_run_group_tests_name("launches of cuda_hopper", tests, NULL, NULL);
}
