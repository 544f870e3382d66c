/* SPDX-License-Identifier: Apache-2.0 */
/* One price: the cost that row blocks, residue classes and global rows are chosen by is the price of the work that the
   plan's items count, on random masks and for every kind of kernels. */
#include "gen/family/family.h"
#include "gen/plan/builder.h"
#include "gen/plan/internal.h"
#include "masks/input/load.h"
#include "tests/gen/random_mask.h"
#include "tests/support/program/options.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static u32 masks = 200; /* --few: a quarter */

static const char *const target_names[] = {
    "x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-bf16", "x86-64-amx", "sm_80", "sm_90a"};
enum { TARGETS = sizeof target_names / sizeof *target_names };

/* A builder and its tables, without any item. */
struct bench {
    struct plan *plan;
    struct plan_pass pass;
    struct builder builder;
};

static void open_bench(struct bench *x, const struct mask *m, uint32_t target,
                       enum abi_dtype dtype)
{
    struct error e = {0};
    const struct target *t = target_find(target_names[target], &e);
    const struct kernel_config config = {
        .request = {.dtype = dtype, .head_dim = 64, .backward = true, .length = m->n}};
    const struct machine *machine = machine_find(family_machine(t, &config.request), &e);
    const struct plan_problem problem = {m, t, &config, machine};
    *x = (struct bench){.plan = plan_empty(&problem, &e)};
    if (!x->plan)
        fail_msg("%s", e.text);
    builder_begin(&x->builder, x->plan, &x->pass, false);
    x->builder.options.can &= ~(uint32_t)(CAN_CUT_ROWS | CAN_JOIN_ROWS); /* no row waits */
}

static void close_bench(struct bench *x)
{
    builder_finish(&x->builder);
    tables_finish(&x->pass);
    plan_destroy(x->plan);
}

/* Seconds of the items from `first` on, by what they count in the plan. */
static double price_items(struct bench *x, uint64_t first)
{
    double sum = 0;
    for (uint64_t k = first; k < x->pass.n_items; k++) {
        const struct effort e = item_effort(&x->pass, &x->pass.items[k]);
        sum += price_of(&x->builder.price, &e);
    }
    return sum;
}

static void must_be(double chosen_by, double counted, const char *what, uint32_t row0)
{
    if (!(fabs(chosen_by - counted) <= 1e-12 * counted))
        fail_msg("%s, row block at %u: chosen by %.17g s, counted %.17g s", what, row0,
                 chosen_by, counted);
}

/* Row block by row block; from `exact` on the prices must agree. */
static void check_row_blocks(struct bench *x, const struct pattern *p, uint32_t exact,
                             const char *what)
{
    for (uint32_t row0 = 0; row0 < p->n; row0 += x->plan->block_rows) {
        const uint64_t first = x->pass.n_items;
        x->builder.total = 0;
        builder_row_block(&x->builder, p, row0, false);
        if (row0 >= exact)
            must_be(x->builder.total, price_items(x, first), what, row0);
    }
}

static void test_random_masks(void **state)
{
    (void)state;
    struct random r = {20260101};
    for (u32 k = 0; k < masks; k++) {
        struct mask *m = random_mask(&r);
        const uint32_t target = random_below(&r, TARGETS);
        struct bench x;
        open_bench(&x, m, target, random_below(&r, 2) ? ABI_F32 : ABI_BF16);
        x.builder.lines_too = random_below(&r, 2);
        x.builder.lines_only = !random_below(&r, 4);
        check_row_blocks(&x, m->pattern[0], 0, target_names[target]);
        close_bench(&x);
        mask_destroy(m);
    }
}

static struct mask *load(const char *name, uint32_t n)
{
    struct error e = {0};
    struct mask_request request = {MASK_REQUEST_DEFAULTS, .name = name, .n = n, .heads = 1};
    struct mask *m = mask_load(&request, NULL, &e);
    if (!m)
        fail_msg("%s: %s", name, e.text);
    return m;
}

/* Shared columns are brought by the first row block, and the others do not pay for them. */
static void test_kept_columns(void **state)
{
    (void)state;
    struct mask *m = load("fixed", 512);
    struct bench x;
    open_bench(&x, m, 4, ABI_BF16);
    shared_choose(&x.builder, x.plan, m->pattern[0]);
    assert_true(x.builder.row_block->n_shared > 0);
    check_row_blocks(&x, m->pattern[0], x.plan->block_rows, "kept columns");
    close_bench(&x);
    mask_destroy(m);
}

/* Classes, the rows that merge them, and lines beside both. */
static void test_classes(void **state)
{
    (void)state;
    struct mask *m = load("strided(3) | window(2)", 192);
    for (uint32_t target = 0; target < TARGETS; target++) {
        struct bench x;
        struct split s = {0};
        open_bench(&x, m, target, ABI_BF16);
        assert_true(split_make(m->pattern[0], 3, false, m->n, &s));
        x.builder.options.merge_launch = 0;
        assert_int_equal(classes_build(&x.builder, x.plan, &s, NULL), 0);
        must_be(x.builder.total, price_items(&x, 0), target_names[target], 0);
        split_finish(&s);
        close_bench(&x);
    }
    mask_destroy(m);
}

int main(int argc, char **argv)
{
    if (test_option(argc, argv, "--few"))
        masks /= 4;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_masks),
        cmocka_unit_test(test_kept_columns),
        cmocka_unit_test(test_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
