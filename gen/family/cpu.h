/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two CPU families. templates/cpu/layout.h and row_block.h compare these sizes of pack and scratch space
   with their own at compile time. */
#pragma once
#include "gen/family/family.h"

/* True if the matrix unit does the dense work. */
bool cpu_has_matrix(const struct target *t, const struct kernel_request *r);
/* Zeros where the target is not a CPU. */
struct item_kernels cpu_item_kernels(const struct target *t, const struct kernel_request *r);
/* Score columns of the widest item as a matrix unit's kernels lay them out; for those that keep all blocks of an item. */
u32 cpu_panel_cols(const struct plan_pass *t);
uint32_t cpu_can(const struct kernel_request *r);
void cpu_launch(const struct target *t, const struct kernel_config *c, enum family_pass pass,
                struct launch_record *ret);
void cpu_numbers(const struct target *t, const struct kernel_config *c, struct text *out);
