/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel the planner names for which item (gen/tables/item_kernel.h). That plan_check refuses another is
   plan_test's; that the reader of kernel files does, forged_kernels_test's. */
#include "gen/plan/plan.h"
#include "masks/input/load.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* ---- an item by itself ---- */

/* A pass of one item with one piece, in order for each kernel in its turn. */
struct one {
    struct abi_item item;
    struct abi_piece piece[2];
    struct plan_pass tables;
    struct item_kernels kernels;
};

static const struct abi_line whole_line = {0, 1, 0, 32};

static void open_one(struct one *o, enum abi_piece_kind kind, u32 cols)
{
    const struct abi_piece piece = {(u32)kind, 0, 1, cols};
    *o = (struct one){
        .item = {.rows = kind == ABI_ROWS ? 1 : 32,
                 .step = 1,
                 .own = {1},
                 .pieces = 1,
                 .cols = cols},
        .piece = {piece, piece},
        .kernels = {.diagonal_rows = 4,
                    .diagonal_most = 256,
                    .global_row_most = 900,
                    .matrix_row_least = 128,
                    .matrix_row_most = 800},
    };
    o->tables = (struct plan_pass){
        .pieces = o->piece, .lines = (struct abi_line *)&whole_line, .uses = 1u << ABI_TILES};
}

static enum abi_item_kernel kernel_of(const struct one *o)
{
    return item_kernel(&o->kernels, &o->tables, &o->item);
}

static void must_fit(const struct one *o, u32 kernel, bool fits)
{
    assert_int_equal(item_kernel_fits(&o->kernels, kernel, &o->tables, &o->item), fits);
}

/* Conditions that disqualify a kernel: a second piece, a split or merged row, another kind, more columns. */
static void check_conditions(const struct one *right, u32 kernel)
{
    struct one o = *right;
    o.tables.pieces = o.piece;
    must_fit(&o, kernel, true);
    must_fit(&o, ABI_ROW_BLOCK_KERNEL, true);
    must_fit(&o, ABI_ITEM_KERNELS, false);
    o.item.pieces = 2;
    must_fit(&o, kernel, false);
    o.item.pieces = 0;
    must_fit(&o, kernel, false);
    o.item.pieces = 1;
    o.item.split = 1;
    must_fit(&o, kernel, false);
    o.item.split = 0;
    o.item.merge[1] = 4;
    must_fit(&o, kernel, false);
    o.item.merge[1] = 0;
    o.piece[0].kind = ABI_TILES;
    must_fit(&o, kernel, false);
    o.piece[0].kind = right->piece[0].kind;
    o.kernels = (struct item_kernels){0};
    must_fit(&o, kernel, false);
    assert_int_equal(kernel_of(&o), ABI_ROW_BLOCK_KERNEL);
}

static void test_conditions(void **state)
{
    (void)state;
    struct one o;
    open_one(&o, ABI_DIAGONAL, 256);
    check_conditions(&o, ABI_DIAGONAL_KERNEL);
    open_one(&o, ABI_DIAGONAL, 257);
    must_fit(&o, ABI_DIAGONAL_KERNEL, false);
    open_one(&o, ABI_ROWS, 900);
    check_conditions(&o, ABI_GLOBAL_ROW_KERNEL);
    open_one(&o, ABI_ROWS, 901);
    must_fit(&o, ABI_GLOBAL_ROW_KERNEL, false);
    for (u32 cols = 127; cols < 1000; cols += cols < 800 ? 1 : 200) {
        open_one(&o, ABI_ROWS, cols);
        must_fit(&o, ABI_MATRIX_ROW_KERNEL, cols >= 128 && cols <= 800);
    }
}

/* A row of one range: by the matrix unit where there is one, the row is long and operands are packed. */
static void test_rows(void **state)
{
    (void)state;
    struct one o;
    open_one(&o, ABI_ROWS, 300);
    check_conditions(&o, ABI_MATRIX_ROW_KERNEL);
    assert_int_equal(kernel_of(&o), ABI_MATRIX_ROW_KERNEL);
    o.tables.pieces = o.piece;
    o.tables.uses = 1u << ABI_ROWS;
    assert_int_equal(kernel_of(&o), ABI_GLOBAL_ROW_KERNEL);
    o.piece[0].count = 2;
    assert_int_equal(kernel_of(&o), ABI_ROW_BLOCK_KERNEL);
    open_one(&o, ABI_ROWS, 300);
    o.item.own[0] = 0;
    assert_int_equal(kernel_of(&o), ABI_ROW_BLOCK_KERNEL);
    open_one(&o, ABI_ROWS, 100);
    assert_int_equal(kernel_of(&o), ABI_GLOBAL_ROW_KERNEL);
}

/* True if an item of these lines alone takes the row-block kernel, not that of diagonals, which takes `together` rows at once. */
static bool is_scattered(const struct abi_line *line, u32 count, u32 together)
{
    const struct item_kernels kernels = {.diagonal_rows = together, .diagonal_most = 256};
    struct abi_piece piece = {ABI_DIAGONAL, 0, count, count};
    const struct plan_pass tables = {.pieces = &piece, .lines = (struct abi_line *)line};
    const struct abi_item item = {.rows = 32, .step = 1, .pieces = 1, .cols = count};
    return item_kernel(&kernels, &tables, &item) == ABI_ROW_BLOCK_KERNEL;
}

/* Rows of a line that CPU kernels take together: entries that are alone there are priced as beside other
   pieces, by whatever a kernel takes four or sixteen at a time. */
static void test_scattered_lines(void **state)
{
    (void)state;
    static const struct abi_line whole = {0, 1, 0, 32}, eight = {0, 1, 8, 16},
                                 across = {0, 1, 14, 19}, one = {3, 1, 5, 6};
    const struct abi_line mixed[] = {whole, one, one, one, one};
    assert_false(is_scattered(&whole, 1, 4) || is_scattered(&whole, 1, 16));
    assert_false(is_scattered(&eight, 1, 4) || is_scattered(&eight, 1, 16));
    assert_false(is_scattered(&across, 1, 4));
    assert_true(is_scattered(&across, 1, 16));
    assert_true(is_scattered(&one, 1, 4) && is_scattered(&one, 1, 16));
    assert_false(is_scattered(mixed, 5, 4) || is_scattered(mixed, 5, 16));
    assert_true(is_scattered(mixed + 1, 4, 4));
}

/* ---- whole plans ---- */

static struct mask *load(const char *name)
{
    struct error e = {0};
    struct mask_request request = {.name = name, .n = 512, MASK_REQUEST_DEFAULTS};
    struct mask *m = mask_load(&request, NULL, &e);
    assert_non_null(m);
    return m;
}

/* Number of the forward plan's items that use the kernel. */
static uint32_t items_of(const char *mask, const char *target, const struct kernel_request *r,
                         enum abi_item_kernel kernel)
{
    struct error e = {0};
    struct mask *m = load(mask);
    const struct target *t = target_find(target, &e);
    struct plan *p = plan_build(m, t, r, machine_find(family_machine(t, r), &e), NULL, &e);
    assert_non_null(p);
    assert_int_equal(plan_check(p, m, &e), 0);
    uint32_t count = 0;
    for (uint64_t k = 0; k < p->forward.n_items; k++)
        count += p->forward.items[k].kernel == (u32)kernel;
    plan_destroy(p);
    mask_destroy(m);
    return count;
}

/* Each kernel is named where it is meant, and nowhere for what it does not do. */
static void test_plans(void **state)
{
    (void)state;
    const struct kernel_request plain = {.head_dim = 64, .backward = true},
                                half = {.dtype = ABI_BF16, .head_dim = 64},
                                sparse = {.head_dim = 64, .transform = ABI_SPARSEGEN},
                                bias = {.head_dim = 64, .bias = ABI_BIAS_ADD};
    const char *const v3 = "x86-64-v3", *const amx = "x86-64-amx";
    assert_int_equal(items_of("dense", v3, &plain, ABI_ROW_BLOCK_KERNEL), 16);
    assert_int_equal(items_of("star", v3, &plain, ABI_DIAGONAL_KERNEL), 16);
    assert_int_equal(items_of("star", v3, &plain, ABI_GLOBAL_ROW_KERNEL), 1);
    assert_int_equal(items_of("star", v3, &plain, ABI_MATRIX_ROW_KERNEL), 0);
    assert_true(items_of("global(0)|blocks(4)", amx, &half, ABI_MATRIX_ROW_KERNEL) > 0);
    assert_int_equal(items_of("global(0)|blocks(4)", amx, &half, ABI_GLOBAL_ROW_KERNEL), 0);
    for (int k = ABI_DIAGONAL_KERNEL; k < ABI_ITEM_KERNELS; k++) {
        assert_int_equal(items_of("star", v3, &sparse, (enum abi_item_kernel)k), 0);
        assert_int_equal(items_of("star", v3, &bias, (enum abi_item_kernel)k), 0);
        assert_int_equal(items_of("star", "sm_80", &plain, (enum abi_item_kernel)k), 0);
    }
}

/* Targets share a plan only where their kernels take items alike: tiles take 16 rows of a diagonal, vectors four. */
static void test_targets_apart(void **state)
{
    (void)state;
    struct error e = {0};
    struct mask *m = load("star");
    const struct kernel_request half = {.dtype = ABI_BF16, .head_dim = 64},
                                plain = {.head_dim = 64};
    const struct target *v3 = target_find("x86-64-v3", &e), *v4 = target_find("x86-64-v4", &e),
                        *dots = target_find("x86-64-bf16", &e),
                        *amx = target_find("x86-64-amx", &e);
    const struct machine *machine = machine_find("x86-amx", &e);
    struct plan *p = plan_build(m, amx, &half, machine, NULL, &e);
    assert_non_null(p);
    assert_true(plan_suits(p, amx, &half, NULL));
    assert_false(plan_suits(p, dots, &half, NULL) || plan_suits(p, v4, &half, NULL));
    plan_destroy(p);
    p = plan_build(m, v4, &plain, machine, NULL, &e);
    assert_non_null(p);
    assert_true(plan_suits(p, v3, &plain, NULL) && plan_suits(p, amx, &plain, NULL));
    plan_destroy(p);
    mask_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conditions),      cmocka_unit_test(test_rows),
        cmocka_unit_test(test_scattered_lines), cmocka_unit_test(test_plans),
        cmocka_unit_test(test_targets_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
