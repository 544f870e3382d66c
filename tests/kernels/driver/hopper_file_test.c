/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel files of cuda_hopper on the mock driver: each pass receives its own steps as the file has them, with the threads and the
   shared memory of its phase. */
#include "masks/base/memory.h"
#include "tests/kernels/driver/cuda_fake.h"
#include "tests/runtime/launches.h"
#include "tests/support/test.h"
#include <stdlib.h>
#include <string.h>

enum { N = 512, HEADS = 3, BATCH = 2 };

static const struct kernel_case cases[] = {
    {"dense", N, HEADS, {.dtype = ABI_BF16, .head_dim = 64, .backward = true}},
    {"longformer", N, HEADS, {.dtype = ABI_F16, .head_dim = 128, .backward = true}},
    {"causal", N, HEADS, {.dtype = ABI_BF16, .head_dim = 40}},
};

static struct maskc_kernel *load(struct kernel_case c)
{
    struct error e = {0};
    struct maskc_kernel *k = NULL;
    uint64_t size;
    c.target = "sm_90a";
    c.family = "cuda_hopper";
    uint8_t *bytes = fixture_file(&c, NULL, NULL, &size);
    if (kernel_load(bytes, size, c.mask, "cuda", &k, &e) < 0)
        fail_msg("%s: %s", c.mask, e.text);
    free(bytes);
    return k;
}

static void run(struct maskc_kernel *k, enum maskc_pass pass)
{
    static _Alignas(64) char data[64]; /* nobody reads it */
    struct maskc_error failure;
    struct maskc_launch l =
        launch_over_one((struct maskc_tensor){.data = data}, (float *)(void *)data);
    l.batch = BATCH;
    l.pass = pass;
    l.workspace_bytes = maskc_workspace_bytes(k, &l);
    l.workspace = memory_aligned(l.workspace_bytes + 1, 1);
    cuda_fake()->launches = 0;
    if (maskc_run(k, &l, &failure))
        fail_msg("%s", failure.text);
    free(l.workspace);
}

static void check_pass(const struct fake *f, int launch, const struct phase *p,
                       const struct plan_steps *s)
{
    const struct abi_steps *seen = &f->hopper_args[launch].steps;
    struct fake_map run;
    memcpy(&run, &f->hopper_args[launch].columns[0].run, sizeof run);
    assert_int_equal(f->launched[launch].threads, p->threads);
    assert_int_equal(f->launched[launch].shared, p->shared_bytes);
    assert_true(s->n_groups > 0 && s->n_steps > 0);
    assert_memory_equal(seen->groups, s->groups, s->n_groups * sizeof *s->groups);
    assert_memory_equal(seen->steps, s->steps, s->n_steps * sizeof *s->steps);
    assert_memory_equal(seen->work, s->work, s->n_work * sizeof *s->work);
    assert_int_equal(seen->works, s->layer_work[0][1]);
    assert_int_equal(run.box[2], s->slots * 32);
}

static int launch_of(const struct fake *f, const char *entry)
{
    for (int k = 0; k < f->launches && k < FAKE_HOPPER; k++)
        if (!strcmp(f->launched[k].entry, entry))
            return k;
    fail_msg("%s was not launched", entry);
    return -1;
}

/* The phases that receive steps; returns how many. */
static uint32_t check_phases(const struct fake *f, const struct phase *p, uint32_t count,
                             const struct plan_steps *steps)
{
    uint32_t found = 0;
    for (uint32_t k = 0; k < count; k++)
        if (p[k].arguments != PHASE_ARGS) {
            check_pass(f, launch_of(f, p[k].entry), &p[k],
                       &steps[p[k].arguments - PHASE_HOPPER_FORWARD]);
            found++;
        }
    return found;
}

static void test_files(void **state)
{
    (void)state;
    struct fake *f = cuda_fake();
    f->capability = 90;
    f->hopper = 1;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct maskc_kernel *k = load(cases[c]);
        const struct plan_steps *steps = k->artifact->plan[0].steps;
        const struct launch_record *l = &k->target->launch;
        run(k, MASKC_FORWARD);
        assert_int_equal(check_phases(f, l->forward, l->n_forward, steps), 1);
        if (cases[c].request.backward) {
            run(k, MASKC_BACKWARD);
            assert_int_equal(check_phases(f, l->backward, l->n_backward, steps), 2);
        }
        kernel_unload(k);
    }
    cuda_must_hold_nothing(f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files)};
    if (argc != 2) {
        print_error("usage: hopper_file_test FOLDER, where the mock libcuda.so.1 is\n");
        return 2;
    }
    return cuda_has_fake()
               ? cmocka_run_group_tests_name("files of cuda_hopper", tests, NULL, NULL)
               : cuda_run_with_fake(argv, argv[1]);
}
