/* SPDX-License-Identifier: Apache-2.0 */
/* Is the kernel shape of each pass the one that measured fastest? Does each shape fit the chip? */
#include "gen/family/cuda_hopper.h"
#include "gen/plan/plan.h"
#include "gen/steps/steps.h"
#include "tests/gen/steps/h100_plan.h"
#include "tests/gen/steps/measured_masks.h"
#include "tests/support/test.h"
#include <string.h>

/* The shapes that are fastest in prototypes: forward on an H100; other passes where they differ by more than their noise. */
static const struct {
    const char *name;
    u32 n;
    bool (*has)(u32 i, u32 j);
    const char *shape[PASSES];
} choices[] = {
    {"dense", 2048, is_dense, {"wide", "wide", "wide"}},
    {"causal", 4096, is_causal, {"wide", "wide", "wide"}},
    {"window 256", 4096, is_window_256, {"four", NULL, NULL}},
    {"blocks of 256", 4096, is_blocks_256, {"four", "wide", NULL}},
    {"window 64 and 2 columns", 4096, is_window_64, {"narrow", "narrow", NULL}},
    {"longformer", 8192, is_longformer, {"narrow", NULL, "narrow"}},
    {"scattered tiles", 4096, is_scattered, {"narrow", "narrow", "narrow"}},
};

static void test_shape_is_the_fastest(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++) {
        struct mask *m = measured_mask(choices[k].n, choices[k].has);
        struct plan *p = h100_plan(m, 64, &family_cuda_hopper);
        for (int pass = 0; pass < PASSES; pass++) {
            const char *found = hopper_shape(&p->config, (enum machine_pass)pass)->name;
            if (choices[k].shape[pass] && strcmp(found, choices[k].shape[pass]))
                fail_msg("%s, %s: %s, expected %s", choices[k].name, pass_names[pass], found,
                         choices[k].shape[pass]);
        }
        plan_destroy(p);
        mask_destroy(m);
    }
}

/* Dense columns are one repeated step, and all of a full group takes turns. */
static void test_dense_is_one_step(void **state)
{
    (void)state;
    struct mask *m = measured_mask(2048, is_dense);
    struct plan *p = h100_plan(m, 64, &family_cuda_hopper);
    const struct plan_steps *t = &p->steps[PASS_FORWARD];
    assert_int_equal(t->n_groups, 11);
    assert_int_equal(t->n_steps, 11);
    for (u32 k = 0; k < 11; k++) {
        assert_int_equal(t->steps[k].times, 16);
        assert_int_equal(t->groups[k].in_turn, k < 10);
    }
    plan_destroy(p);
    mask_destroy(m);
}

/* Dense, but one of three row blocks does not see 512 columns. */
static bool has_hole(u32 i, u32 j)
{
    return i / 64 != 2 || j < 512 || j >= 1024;
}

/* For so few steps the row block gets patterns of zeros, and the group takes turns; a group with half of its places idle
   does not. */
static void test_few_idle_places(void **state)
{
    (void)state;
    struct error e = {0};
    struct mask *m = measured_mask(2048, has_hole), *causal = measured_mask(2048, is_causal);
    struct plan *p = h100_plan(m, 64, &family_cuda_hopper),
                *q = h100_plan(causal, 64, &family_cuda_hopper);
    const struct plan_steps *t = &p->steps[PASS_FORWARD];
    u32 zeros = 0;
    assert_int_equal(t->warpgroups, 3);
    assert_int_equal(t->groups[0].in_turn, 1);
    for (u32 k = 0; k < t->groups[0].steps; k++)
        zeros += t->steps[k].pattern[2][0] >= ABI_SLOT_PATTERN && t->steps[k].times == 1;
    assert_int_equal(zeros, 4);
    assert_int_equal(plan_check(p, m, &e), 0);
    for (u32 k = 0; k < t->groups[0].steps; k++)
        if (t->steps[k].pattern[2][0] >= ABI_SLOT_PATTERN)
            t->steps[k].pattern[2][0] = ABI_SLOT_EMPTY;
    assert_int_not_equal(plan_check(p, m, &e), 0);
    assert_non_null(strstr(e.text, "turns"));
    assert_int_equal(q->steps[PASS_FORWARD].groups[0].in_turn, 0);
    plan_destroy(p);
    plan_destroy(q);
    mask_destroy(m);
    mask_destroy(causal);
}

/* A row far longer than row blocks, though too short to be cut, and one about half as long. */
static bool has_rows(u32 i, u32 j)
{
    return (i == 700 && j < 1000) || (i == 1500 && j < 600) || i / 64 == j / 64;
}

/* The longest row of every head, then the other one of every head, then row blocks. */
static void test_longest_first(void **state)
{
    (void)state;
    struct mask *m = measured_mask(4096, has_rows);
    struct plan *p = h100_plan(m, 64, &family_cuda_hopper);
    const struct plan_steps *t = &p->steps[PASS_FORWARD];
    for (u32 k = 0; k < 24; k++) {
        const struct abi_group *g = &t->groups[t->work[k].item];
        assert_int_equal(t->work[k].head, k % 12);
        assert_int_equal(p->forward.items[g->item[0]].row0, k < 12 ? 700 : 1500);
    }
    plan_destroy(p);
    mask_destroy(m);
}

/* A block must fit the processor as often as the shape says, with the reserve of 1 KiB that each block has. */
static void test_shared_memory_fits(void **state)
{
    (void)state;
    enum { PROCESSOR = 228 * 1024, RESERVE = 1024 };
    struct error e = {0};
    const struct target *target = target_find("sm_90a", &e);
    for (uint32_t dim = 16; dim <= 128; dim += 8)
        for (int pass = 0; pass < PASSES; pass++) {
            const struct kernel_request r = {.head_dim = dim};
            const struct step_shape *shape[STEP_SHAPES_MOST];
            const u32 count = hopper_shapes(&r, (enum machine_pass)pass, shape);
            assert_true(count > 0);
            for (u32 k = 0; k < count; k++) {
                const u32 bytes = hopper_shared_bytes(shape[k], (enum machine_pass)pass, dim);
                assert_true(bytes <= target->shared_bytes);
                assert_true((bytes + RESERVE) * shape[k]->blocks <= PROCESSOR);
                assert_true(shape[k]->warpgroups <= ABI_GROUP_BLOCKS &&
                            shape[k]->slots <= ABI_STEP_SLOTS);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense_is_one_step),  cmocka_unit_test(test_shape_is_the_fastest),
        cmocka_unit_test(test_few_idle_places),    cmocka_unit_test(test_longest_first),
        cmocka_unit_test(test_shared_memory_fits),
    };
    return cmocka_run_group_tests_name("step_shape", tests, NULL, NULL);
}
