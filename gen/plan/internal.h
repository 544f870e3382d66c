/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of gen/plan. */
#pragma once
#include "gen/plan/plan.h"

/* Orders every layer's (head, item) pairs. Layers whose heads have the same masks share one list. And
   lists the items of each head. */
void work_build(const struct plan *p, struct plan_pass *pass);

/* Dearer classes first, within a class by head, then item. Where there are split items: heads one
   by one, of each the split items first; or items that merge last, in a launch of their own. */
enum work_order { WORK_BY_COST, WORK_BY_HEAD, WORK_MERGE_LAST };
enum work_order work_order(const struct plan *p, const struct plan_pass *pass);

/* 16: at least a quarter of the list's largest cost, 15: at least a sixteenth, ... */
u32 work_class(u32 cost, u32 largest);
u32 work_largest(const struct plan_pass *pass, uint64_t first, uint64_t count);

/* The summary of mask `which`; `alone` and `applied` by row of the table of lowerings. */
void summary_fill(const struct plan *p, struct plan_pass *pass, uint32_t which,
                  const struct pattern *pattern, const double *alone, const bool *applied);

/* How many items of mask `which` take each kernel. */
void count_kernels(const struct plan_pass *t, uint32_t which, uint64_t ret[ABI_ITEM_KERNELS]);

/* A plan for kernels of this config, whose row blocks are tall or not; plan_build() chooses among such plans. */
struct plan *plan_make(const struct mask *m, const struct target *t,
                       const struct kernel_config *c, const struct machine *machine,
                       struct error *e);

/* Threads of a CPU, as asked for; blocks of a GPU. */
uint32_t predict_workers(const struct plan *p, uint32_t threads);

/* A launch right after another, over the first. */
#define MERGE_LAUNCH 0.5

/* FLOP of the least backward pass over those of the forward: 5 products for 2. */
#define BACKWARD_FLOOR 2.5

/* What an item does, and what is done once a head for a plan of these kinds: operands packed. */
struct effort item_effort(const struct plan_pass *t, const struct abi_item *item);
struct effort pack_effort(const struct plan *p, uint32_t uses);
/* What it costs a head in a pass that its operands are packed, with the bytes that this streams. */
double predict_pack(const struct plan *p, enum machine_pass pass);

/* Times of one mask for every head of a layer that has it, in seconds of a whole launch. */
struct mask_times {
    uint32_t layer, heads; /* the first layer that has it, and in how many heads */
    double predicted, dense, floor;
};
struct mask_times mask_times(const struct plan *p, uint32_t which, bool backward,
                             uint32_t batch, uint32_t threads);
