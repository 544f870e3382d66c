/* SPDX-License-Identifier: Apache-2.0 */
/* What gates_test compiles: each family of CUDA templates for targets, head dimensions and features. */
#pragma once
#include "gen/emit/emit.h"
#include "tests/kernels/gate_budgets.h"

struct gate_plan {
    const struct chip *chip;
    struct kernel_config config;
};

/* The usual run's, or all; of those the ones for targets, families and head dimensions in `named` (up to a null;
   none of a kind: all). The caller frees them. */
struct gate_plan *gate_plans(bool all, const char *const *named, uint32_t *ret_count);

/* Whose budgets hold an entry. A short kernel's backward pass may be another family's. */
const char *gate_family_of(const char *entry, const struct kernel_config *f);

/* Of gate_budgets.h; DIMS: it has no budgets of its own. */
uint32_t gate_dim_index(uint32_t dim);
