/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel an item of a plan takes (enum abi_item_kernel). The one statement of that policy: the planner names
   kernels by it and prices items by it, plan_check and the reader of kernel files hold the names against it. */
#pragma once
#include "templates/abi.h"
#include <stdbool.h>

struct plan_pass;

/* Items that a family's kernels besides the row-block kernel accept; at most 0 columns: no such kernel. */
struct item_kernels {
    u32 priced_only;   /* 1: no such kernels, but lines are priced as with them */
    u32 diagonal_rows; /* of a diagonal, that are taken together */
    u32 diagonal_most, global_row_most, matrix_row_least,
        matrix_row_most; /* columns of an item */
};

static inline bool item_kernels_any(const struct item_kernels *k)
{
    return !k->priced_only && (k->diagonal_most || k->global_row_most || k->matrix_row_most);
}

/* True if the item meets all conditions that the kernel needs to stay within its blocks. */
bool item_kernel_fits(const struct item_kernels *k, u32 kernel, const struct plan_pass *t,
                      const struct abi_item *item);
/* The best kernel that the item may take. Pieces of all items must be there: `uses` of the pass counts. */
enum abi_item_kernel item_kernel(const struct item_kernels *k, const struct plan_pass *t,
                                 const struct abi_item *item);
/* Do lines of the item cost more, as the kernel for diagonals does not take them? By `kernels` of the pass. */
bool item_lines_mixed(const struct plan_pass *t, const struct abi_item *item);
extern const char *const item_kernel_names[ABI_ITEM_KERNELS]; /* "row_block", "diagonal", ... */
