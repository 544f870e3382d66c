/* SPDX-License-Identifier: Apache-2.0 */
/* The work that a kernel of the half dtypes should do, by the tables of its plan alone: products of 16 x 8
   fragments with an active entry, copies of visited columns. Results cannot show it: a kernel that skipped
   nothing would be right too. */
#pragma once
#include "gen/plan/plan.h"
#include "runtime/emulated/launch.h"
#include "tools/reference/check.h"

/* The problem of the whole mask: right results (must_hold), by the work that is planned. */
void must_hold_as_planned(const struct maskc_kernel *k, const char *name);

/* Does `done`, counted over one launch of each pass, agree? If not, *ret (of `storage` bytes) says where. */
bool work_is_planned(const struct maskc_kernel *k, const struct problem *p,
                     const struct emulation_work *done, char *ret, size_t storage);

/* Does an item of the pass, itself no split one, merge rows that a split item began? */
bool pass_merges(const struct plan_pass *p);

/* Live fragments of a pass's items for one sequence and layer 0, of a plan for the tiled kernels. */
uint64_t planned_fragments(const struct plan *p, bool transposed);
