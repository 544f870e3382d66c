/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel files with a right checksum whose plan names a kernel that the item may not take: refused, before the kernel
   leaves something out or leaves its block. */
#include "tests/runtime/forge.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct plan_pass *pass_of(struct artifact *a)
{
    return &a->plan[0].forward;
}

/* The first item that takes one kernel is said to take another. */
static bool renamed(struct artifact *a, uint32_t from, uint32_t to)
{
    struct plan_pass *p = pass_of(a);
    for (uint64_t k = 0; k < p->n_items; k++)
        if (p->items[k].kernel == from) {
            p->items[k].kernel = to;
            return true;
        }
    return false;
}

static bool kernel_unknown(struct artifact *a)
{
    return renamed(a, ABI_ROW_BLOCK_KERNEL, ABI_ITEM_KERNELS);
}

static bool kernel_diagonal_as_row(struct artifact *a)
{
    return renamed(a, ABI_DIAGONAL_KERNEL, ABI_GLOBAL_ROW_KERNEL);
}

static bool kernel_row_as_diagonal(struct artifact *a)
{
    return renamed(a, ABI_GLOBAL_ROW_KERNEL, ABI_DIAGONAL_KERNEL);
}

/* The target has no matrix unit. */
static bool kernel_row_as_matrix(struct artifact *a)
{
    return renamed(a, ABI_GLOBAL_ROW_KERNEL, ABI_MATRIX_ROW_KERNEL);
}

/* With sparsegen the plan names the row-block kernel alone. */
static bool kernel_of_sparsegen(struct artifact *a)
{
    const struct plan_pass *p = pass_of(a);
    for (uint64_t k = 0; a->request.transform == ABI_SPARSEGEN && k < p->n_items; k++)
        if (p->items[k].pieces == 1 && p->pieces[p->items[k].piece].kind == ABI_DIAGONAL) {
            p->items[k].kernel = ABI_DIAGONAL_KERNEL;
            return true;
        }
    return false;
}

/* An item of two pieces, an item that merges, a row in two ranges, too many columns: the kernel would leave some
   out, or leave its block. */
static bool kernel_two_pieces(struct artifact *a)
{
    const struct plan_pass *p = pass_of(a);
    for (uint64_t k = 0; a->request.transform == ABI_SOFTMAX && k < p->n_items; k++)
        if (p->items[k].pieces == 2 && p->pieces[p->items[k].piece].kind == ABI_DIAGONAL) {
            p->items[k].kernel = ABI_DIAGONAL_KERNEL;
            return true;
        }
    return false;
}

static bool kernel_two_ranges(struct artifact *a)
{
    const struct plan_pass *p = pass_of(a);
    for (uint64_t k = 0; a->request.transform == ABI_SOFTMAX && k < p->n_items; k++)
        if (p->items[k].pieces == 1 && p->pieces[p->items[k].piece].kind == ABI_ROWS &&
            p->pieces[p->items[k].piece].count > 1) {
            p->items[k].kernel = ABI_GLOBAL_ROW_KERNEL;
            return true;
        }
    return false;
}

static bool kernel_merges(struct artifact *a)
{
    const struct plan_pass *p = pass_of(a);
    for (uint64_t k = 0; a->request.transform == ABI_SOFTMAX && k < p->n_items; k++)
        if (item_merges(&p->items[k]) || p->items[k].split) {
            p->items[k].kernel = ABI_DIAGONAL_KERNEL;
            return true;
        }
    return false;
}

/* In the plan of a GPU, whose kernels do not take it. */
static bool kernel_of_gpu(struct artifact *a)
{
    struct plan_pass *gpu = &a->plan[a->n_plans - 1].forward;
    for (uint64_t k = 0; a->n_plans > 1 && k < gpu->n_items; k++)
        if (pass_of(a)->items[k].kernel) {
            gpu->items[k].kernel = pass_of(a)->items[k].kernel;
            return true;
        }
    return false;
}

static const struct lie lies[] = {
    NAMED(kernel_unknown),       NAMED(kernel_diagonal_as_row), NAMED(kernel_row_as_diagonal),
    NAMED(kernel_row_as_matrix), NAMED(kernel_of_sparsegen),    NAMED(kernel_two_pieces),
    NAMED(kernel_two_ranges),    NAMED(kernel_merges),          NAMED(kernel_of_gpu),
};

static void every_lie_is_refused(void **state)
{
    (void)state;
    forge_all(lies, sizeof lies / sizeof *lies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_lie_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
