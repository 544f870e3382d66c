/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the files of gen/plan share. */
#pragma once
#include "gen/plan/plan.h"
#include "gen/steps/steps.h"

/* Orders the (head, item) pairs of every layer and lists the items of each head. Layers whose heads have the same masks
   share one list. */
void work_build(const struct plan *p, struct plan_pass *pass);

/* On CPUs head by head, split items first; on CUDA by cost class, merging items last, in a launch of their own. Within a
   class by head, then item. */
enum work_order { WORK_BY_COST, WORK_BY_HEAD, WORK_MERGE_LAST };
enum work_order work_order(const struct plan *p, const struct plan_pass *pass);

/* Seconds of a layer's list, priced by the items' costs: the worker that is free first gets the next item, as in the
   runtime. Items that merge begin when all others have ended. */
double work_span(const struct plan_pass *t, uint32_t layer, uint32_t batch, uint32_t workers);

/* 16: at least a quarter of the list's largest cost, 15: at least a sixteenth, ... */
u32 work_class(u32 cost, u32 largest);
u32 work_largest(const struct plan_pass *pass, uint64_t first, uint64_t count);

/* Fills the summary of mask `which` from its items, effort and `alone`. The pass is one of p's. */
void summary_fill(const struct plan *p, struct plan_pass *pass, uint32_t which,
                  const struct pattern *pattern);

/* Number of items of mask `which` for each kernel. */
void count_kernels(const struct plan_pass *t, uint32_t which, uint64_t ret[ABI_ITEM_KERNELS]);

/* Input of a plan. */
struct plan_problem {
    const struct mask *mask;
    const struct target *target;
    const struct kernel_config *config; /* with its families; row blocks are tall or not */
    const struct machine *machine;      /* its prices are printed */
    bool by_rates;                      /* as in struct plan_options */
    uint32_t without;                   /* bits of enum family_can that plans do not use */
    struct pattern **
        transposes; /* [mask patterns], made by the first plan, for all plans of the problem; null: not kept */
};
/* A plan without tables, or null with *e set. */
struct plan *plan_empty(const struct plan_problem *problem, struct error *e);
/* Lists the pairs of a forward and a backward family that can compute the passes, as configs; of pairs with the same plan and
   price only the first. If `asked` computes a pass, no other family is listed for it. */
enum { PAIRS_MOST = FAMILIES_MOST * FAMILIES_MOST };
uint32_t families_list(const struct plan_problem *problem, const struct kernel_family *asked,
                       struct kernel_config ret[PAIRS_MOST]);
/* The cheapest of their plans by the machine's own prices (see LEAST_FAMILY_GAIN), and its config; null with *e set, also if
   `asked` computes no pass. */
struct plan *families_choose(const struct plan_problem *problem,
                             const struct kernel_family *asked, struct kernel_config *ret,
                             struct error *e);
/* The plan of the machine's own prices with low or tall row blocks; null with *e set. */
struct plan *plan_of_heights(const struct plan_problem *problem, struct error *e);
/* Prices and comparison by which the builder chooses. */
struct plan_way {
    const struct machine *prices; /* the problem's own, or those of another row */
    const struct plan *than; /* null, or the plan that lines for all row blocks must beat */
};
/* A plan chosen this way and priced by the problem's machine; null with *e set. */
struct plan *plan_of_way(const struct plan_problem *problem, const struct plan_way *way,
                         struct error *e);
/* Computes cost and effort of all items of a pattern, after the items and the cost of each lowering alone are known. The
   pass is one of p's; `pattern` is transposed if the pass is. */
void pass_count(const struct plan *p, struct plan_pass *pass, uint32_t which,
                const struct pattern *pattern);
/* Names the items' kernels and lists their work, after all patterns are planned. */
void pass_finish(const struct plan *p, struct plan_pass *pass);
/* Copies the kernel features that the plan needs to its config. */
void plan_note_config(struct plan *p, const struct kernel_config *c);

/* `own`, which is the plan of the problem's own prices, with the best tables that prices of several rows choose. */
struct plan *portfolio_build(const struct plan_problem *problem, struct plan *own,
                             const struct plan_options *o);
/* Lists the pairs of these tables that differ, for plan_choices(). Destroys `own`. */
uint32_t portfolio_choices(const struct plan_problem *problem, struct plan *own,
                           struct plan_choice *ret, uint32_t most);
/* A plan whose row blocks come from those of several plans for the problem, each from the cheapest by the first
   one's prices; null with *e set. */
struct plan *mix_row_blocks(const struct plan_problem *problem, struct plan *const *plan,
                            uint32_t count, struct error *e);

/* Seconds of one pass over a layer. */
double predict_pass(const struct plan *p, enum machine_pass pass, uint32_t layer,
                    uint32_t batch, uint32_t threads);

/* Seconds of a launch that visits every tile, those with inactive entries under a pattern. May be less than the plan's own. */
double predict_every_tile(const struct plan *p, bool backward, uint32_t layer, uint32_t batch,
                          uint32_t threads);

/* Sequences that fill a GPU; 1 on a CPU. */
uint32_t plan_full_batch(const struct plan *p);
/* If kernels read steps (plan_steps.c): makes the steps of each pass for the shape with the least predicted time, and adds
   their times to the summaries. */
void plan_add_steps(struct plan *p);
bool plan_reads_steps(const struct plan *p);
struct step_launch plan_step_launch(const struct plan *p, enum machine_pass pass,
                                    uint32_t batch);
/* Seconds of a pass over a layer; of a launch of `heads` heads of one mask, and of a dense mask. */
double predict_steps(const struct plan *p, enum machine_pass pass, uint32_t layer,
                     uint32_t batch);
double predict_steps_mask(const struct plan *p, bool backward, uint32_t which, double heads);
double predict_steps_dense(const struct plan *p, bool backward, double heads);
/* The same if every tile of the layer's masks is visited, those with inactive entries under a pattern. */
double predict_steps_every_tile(const struct plan *p, bool backward, uint32_t layer,
                                double heads);

/* `threads` on a CPU; on a GPU the machine's workers, half as many for tall row blocks. At least 1. */
uint32_t predict_workers(const struct plan *p, uint32_t threads);

/* Fixed time of a launch right after another, relative to the first one's. */
#define MERGE_LAUNCH 0.5

/* FLOP of the shortest backward pass relative to the forward pass: 5 products and 2. */
#define BACKWARD_FLOOR 2.5

/* Rows and columns of a pass over the forward or the transposed plan. */
static inline struct request_sides plan_sides(const struct plan *p, bool transposed)
{
    return request_sides(&p->config.request, p->n, transposed);
}

/* Fills p->packed. With another number of keys than of queries a head packs the columns that its rows see, in whole groups
   and with what products read beside them (templates/cpu/pack/used.h); else all. */
void count_packed(struct plan *p, const struct mask *m);
/* Columns packed for one mask; their mean over the heads of a layer; over all layers. */
static inline double packed_of(const struct plan *p, bool transposed, uint32_t which)
{
    return p->packed[(transposed ? p->n_masks : 0) + which];
}
double packed_layer(const struct plan *p, bool transposed, uint32_t layer);
double packed_mean(const struct plan *p, bool transposed);
/* Effort of packing so many columns, once a head, for a pass of these kinds. */
struct effort pack_effort(const struct plan *p, double columns, uint32_t uses);
/* Seconds a head of packing operands in a pass, including the bytes that this streams. */
double predict_pack(const struct plan *p, enum machine_pass pass);

/* Times of one mask for every head of a layer that has it, in seconds of a whole launch. */
struct mask_times {
    uint32_t layer, heads; /* the first layer that has it, and in how many heads */
    double predicted, dense, floor;
};
struct mask_times mask_times(const struct plan *p, uint32_t which, bool backward,
                             uint32_t batch, uint32_t threads);
