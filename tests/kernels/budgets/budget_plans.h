/* SPDX-License-Identifier: Apache-2.0 */
/* Units of resource_budgets_test: each family of CUDA templates for targets, head dimensions and features. */
#pragma once
#include "gen/emit/emit.h"
#include "tests/kernels/budgets/budget_table.h"

struct budget_plan {
    const struct chip *chip;
    struct kernel_config config;
};

/* The usual run's, or all; of those the ones for targets, families and head dimensions in `named` (up to a null;
   none of a kind: all). The caller frees them. */
struct budget_plan *budget_plans(bool all, const char *const *named, uint32_t *ret_count);

/* Family whose budgets apply to an entry. A resident kernel may have another family's backward pass. */
const char *budget_family_of(const char *entry, const struct kernel_config *f);

/* Index into budget_table.h; DIMS where the dimension has no budgets of its own. */
uint32_t budget_dim_index(uint32_t dim);
