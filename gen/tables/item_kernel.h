/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel an item of a plan takes (enum abi_item_kernel). The one statement of that policy: the planner names
   kernels by it and prices items by it, plan_check and the reader of kernel files hold the names against it. */
#pragma once
#include "templates/abi.h"
#include <stdbool.h>

struct plan_pass;

/* What a family's kernels beside the row-block kernel take; 0 columns at most: it has no such kernel. */
struct item_kernels {
    u32 priced_only;   /* 1: there are none, but lines cost what they cost with them */
    u32 diagonal_rows; /* of a diagonal, that are taken together */
    u32 diagonal_most, global_row_most, matrix_row_least,
        matrix_row_most; /* columns of an item */
};

static inline bool item_kernels_any(const struct item_kernels *k)
{
    return !k->priced_only && (k->diagonal_most || k->global_row_most || k->matrix_row_most);
}

/* May the item take the kernel? What the kernel relies on, so that it stays within its blocks. */
bool item_kernel_fits(const struct item_kernels *k, u32 kernel, const struct plan_pass *t,
                      const struct abi_item *item);
/* The best kernel that the item may take. Pieces of all items must be there: `uses` of the pass counts. */
enum abi_item_kernel item_kernel(const struct item_kernels *k, const struct plan_pass *t,
                                 const struct abi_item *item);
/* Do lines of the item cost more, as the kernel for diagonals does not take them? By `kernels` of the pass. */
bool item_lines_mixed(const struct plan_pass *t, const struct abi_item *item);
extern const char *const item_kernel_names[ABI_ITEM_KERNELS]; /* "row_block", "diagonal", ... */
