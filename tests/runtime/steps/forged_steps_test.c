/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel files with a right checksum whose steps are forged: refused, before a kernel leaves its tables or the mask. */
#include "tests/runtime/steps/forge_steps.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- lies ---- */

static struct plan_steps *steps_of(struct artifact *a)
{
    return &a->plan[0].steps[PASS_FORWARD];
}

static bool group_step(struct artifact *a)
{
    steps_of(a)->groups[0].step = (u32)steps_of(a)->n_steps + 1;
    return true;
}

static bool group_steps(struct artifact *a)
{
    steps_of(a)->groups[0].steps = UINT32_MAX;
    return true;
}

static bool group_item(struct artifact *a)
{
    steps_of(a)->groups[0].item[0] = (u32)a->plan[0].forward.n_items;
    return true;
}

static bool group_item_twice(struct artifact *a)
{
    steps_of(a)->groups[1].item[0] = steps_of(a)->groups[0].item[0];
    return true;
}

static bool group_empty(struct artifact *a)
{
    for (u32 k = 0; k < ABI_GROUP_BLOCKS; k++)
        steps_of(a)->groups[0].item[k] = ABI_NO_ITEM;
    return true;
}

static bool group_no_cost(struct artifact *a)
{
    steps_of(a)->groups[0].cost = 0;
    return true;
}

static bool group_in_turn(struct artifact *a)
{
    steps_of(a)->groups[0].in_turn = 2;
    return true;
}

/* Turns in a group whose last row block is missing. */
static bool group_in_turn_of_few(struct artifact *a)
{
    struct plan_steps *t = steps_of(a);
    for (uint64_t k = 0; k < t->n_groups; k++)
        if (t->groups[k].item[t->warpgroups - 1] == ABI_NO_ITEM) {
            t->groups[k].in_turn = 1;
            return true;
        }
    return false;
}

/* A global row beside a row block. */
static bool group_row_beside(struct artifact *a)
{
    struct plan_steps *t = &a->plan[0].steps[PASS_DQ];
    const struct abi_item *items = a->plan[0].forward.items;
    for (uint64_t k = 0; t->warpgroups > 1 && k < t->n_groups; k++)
        if (items[t->groups[k].item[0]].rows == 1 && t->groups[0].item[1] != ABI_NO_ITEM) {
            t->groups[k].item[1] = t->groups[0].item[1];
            t->groups[0].item[1] = ABI_NO_ITEM;
            return true;
        }
    return false;
}

static bool first_order(struct artifact *a)
{
    steps_of(a)->group_first[1]++;
    return true;
}

static bool first_begin(struct artifact *a)
{
    steps_of(a)->group_first[0]++;
    return true;
}

/* The first step that has what is asked for, or null. */
static struct abi_step *find_step(struct artifact *a, bool gathered, bool repeated)
{
    struct plan_steps *t = steps_of(a);
    for (uint64_t k = 0; k < t->n_steps; k++) {
        bool found = !gathered;
        for (u32 s = 0; s < t->slots; s++)
            found |= (t->steps[k].column[s] & ABI_GATHERED) != 0;
        if (found && (!repeated || t->steps[k].times > 1))
            return &t->steps[k];
    }
    return NULL;
}

static u32 gathered_slot(const struct abi_step *s)
{
    u32 k = 0;
    while (!(s->column[k] & ABI_GATHERED))
        k++;
    return k;
}

static bool step_column(struct artifact *a)
{
    find_step(a, false, false)->column[0] = a->mask->n / 32 * 32 + 32;
    return true;
}

static bool step_column_odd(struct artifact *a)
{
    struct abi_step *s = find_step(a, false, false);
    s->column[0]++;
    s->run = 0;
    return true;
}

static bool step_column_far(struct artifact *a)
{
    struct plan_steps *t = steps_of(a);
    for (uint64_t k = 0; k < t->n_steps; k++)
        if (!t->steps[k].live[t->slots - 1]) {
            t->steps[k].column[t->slots - 1] = 1 << 30;
            t->steps[k].run = 0;
            return true;
        }
    return false;
}

static bool step_live(struct artifact *a)
{
    struct plan_steps *t = steps_of(a);
    for (uint64_t k = 0; k < t->n_steps; k++)
        for (u32 s = 0; s < t->slots; s++)
            if (t->steps[k].live[s] && t->steps[k].column[s] == a->mask->n / 32 * 32) {
                t->steps[k].live[s] = ~0u;
                return true;
            }
    return false;
}

static bool step_gather(struct artifact *a)
{
    struct abi_step *s = find_step(a, true, false);
    if (s)
        s->column[gathered_slot(s)] = ABI_GATHERED + (u32)a->plan[0].forward.n_columns;
    return s;
}

static bool step_gather_run(struct artifact *a)
{
    struct abi_step *s = find_step(a, true, false);
    if (s)
        s->run = 1;
    return s;
}

static bool step_pattern(struct artifact *a)
{
    find_step(a, false, false)->pattern[0][0] =
        ABI_SLOT_PATTERN + (u32)a->plan[0].forward.n_patterns;
    return true;
}

/* A pattern with bits of columns that do not count. */
static bool step_pattern_dead(struct artifact *a)
{
    struct plan_steps *t = steps_of(a);
    for (uint64_t k = 0; k < t->n_steps; k++)
        if (t->steps[k].pattern[0][0] >= ABI_SLOT_PATTERN) {
            t->steps[k].live[0] &= t->steps[k].live[0] - 1;
            return true;
        }
    return false;
}

static bool step_pattern_beyond(struct artifact *a)
{
    struct plan_steps *t = steps_of(a);
    if (t->warpgroups == ABI_GROUP_BLOCKS)
        return false;
    t->steps[0].pattern[t->warpgroups][0] = ABI_SLOT_FULL;
    return true;
}

static bool step_slot_beyond(struct artifact *a)
{
    struct plan_steps *t = steps_of(a);
    if (t->slots == ABI_STEP_SLOTS)
        return false;
    t->steps[0].live[t->slots] = 1;
    return true;
}

static bool step_never(struct artifact *a)
{
    find_step(a, false, false)->times = 0;
    return true;
}

static bool step_too_often(struct artifact *a)
{
    struct abi_step *s = find_step(a, false, true);
    if (s)
        s->times = a->mask->n / 32;
    return s;
}

static bool step_overflow(struct artifact *a)
{
    struct abi_step *s = find_step(a, false, true);
    if (s)
        s->times = UINT32_MAX;
    return s;
}

static bool step_repeated_pattern(struct artifact *a)
{
    struct abi_step *s = find_step(a, false, true);
    if (s && a->plan[0].forward.n_patterns)
        s->pattern[0][0] = ABI_SLOT_PATTERN;
    return s && a->plan[0].forward.n_patterns;
}

static bool step_repeated_apart(struct artifact *a)
{
    struct abi_step *s = find_step(a, false, true);
    if (s)
        s->run = 0;
    return s;
}

static bool work_head(struct artifact *a)
{
    steps_of(a)->work[0].head = 2;
    return true;
}

static bool work_group(struct artifact *a)
{
    steps_of(a)->work[0].item = (u32)steps_of(a)->n_groups;
    return true;
}

static bool work_twice(struct artifact *a)
{
    steps_of(a)->work[1] = steps_of(a)->work[0];
    return true;
}

static bool layer_count(struct artifact *a)
{
    steps_of(a)->layer_work[0][1]++;
    return true;
}

static bool warpgroups(struct artifact *a)
{
    steps_of(a)->warpgroups = ABI_GROUP_BLOCKS + 1;
    return true;
}

static bool slots(struct artifact *a)
{
    steps_of(a)->slots = 0;
    return true;
}

static bool threads(struct artifact *a)
{
    a->target[0].launch.forward[0].threads += 128;
    return true;
}

static bool no_steps(struct artifact *a)
{
    memset(&a->plan[0].steps[PASS_DKV], 0, sizeof a->plan[0].steps[PASS_DKV]);
    return true;
}

static bool arguments(struct artifact *a)
{
    a->target[0].launch.forward[0].arguments = PHASE_HOPPER_DQ;
    return true;
}

/* clang-format off */
static const struct lie lies[] = {
    NAMED(group_step), NAMED(group_steps), NAMED(group_item), NAMED(group_item_twice), NAMED(group_empty),
    NAMED(group_no_cost), NAMED(group_in_turn), NAMED(group_in_turn_of_few), NAMED(group_row_beside), NAMED(first_order),
    NAMED(first_begin), NAMED(step_column), NAMED(step_column_odd), NAMED(step_column_far), NAMED(step_live),
    NAMED(step_gather), NAMED(step_gather_run), NAMED(step_pattern), NAMED(step_pattern_dead), NAMED(step_pattern_beyond),
    NAMED(step_slot_beyond), NAMED(step_never), NAMED(step_too_often), NAMED(step_overflow), NAMED(step_repeated_pattern),
    NAMED(step_repeated_apart), NAMED(work_head), NAMED(work_group), NAMED(work_twice), NAMED(layer_count),
    NAMED(warpgroups), NAMED(slots), NAMED(threads), NAMED(no_steps), NAMED(arguments),
};
/* clang-format on */
static void every_lie_is_refused(void **state)
{
    (void)state;
    forge_steps(lies, sizeof lies / sizeof *lies);
}

/* Steps read from a file equal those that were written. */
static void steps_come_back(void **state)
{
    (void)state;
    struct step_ground g = step_ground_make(1);
    struct error e = {0};
    struct artifact *a;
    assert_int_equal(artifact_read(g.bytes, g.size, "FILE", &a, &e), 0);
    for (int k = 0; k < PASSES; k++) {
        const struct plan_steps *x = &g.plan->steps[k], *y = &a->plan[0].steps[k];
        assert_int_equal(x->n_groups, y->n_groups);
        assert_int_equal(x->n_steps, y->n_steps);
        assert_int_equal(x->n_work, y->n_work);
        assert_int_equal(x->warpgroups, y->warpgroups);
        assert_int_equal(x->slots, y->slots);
        assert_memory_equal(x->groups, y->groups, x->n_groups * sizeof *x->groups);
        assert_memory_equal(x->steps, y->steps, x->n_steps * sizeof *x->steps);
        assert_memory_equal(x->work, y->work, x->n_work * sizeof *x->work);
    }
    assert_int_equal(a->target[0].launch.backward[1].arguments, PHASE_HOPPER_DKV);
    artifact_destroy(a);
    step_ground_finish(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_come_back),
                                       cmocka_unit_test(every_lie_is_refused)};
    return cmocka_run_group_tests_name("forged_steps", tests, NULL, NULL);
}
