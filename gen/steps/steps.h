/* SPDX-License-Identifier: Apache-2.0 */
/* From the items of a plan to groups and steps (struct abi_group, abi_step): consecutive row blocks share a block of the
   grid, one to each warpgroup, and columns come for all of them together. */
#pragma once
#include "gen/cost/machine.h"
#include "gen/family/step_shape.h"
#include "gen/tables/pass.h"
#include "gen/tables/steps.h"
#include "masks/base/text.h"
#include <jansson.h>

/* The items of a pass, and where their masks are used. */
struct step_source {
    struct plan_pass *pass; /* may get patterns */
    const uint32_t *at;     /* [layers * heads], as in struct mask */
    uint32_t n, layers, heads, n_masks;
};

/* Fills *ret, which is zeroed: the groups of each mask, their steps, and the work list of each layer. The longest groups
   come first, of all heads; the others by class of cost, and within it by head. */
void steps_build(const struct step_source *s, const struct step_shape *shape,
                 struct plan_steps *ret);
void steps_finish(struct plan_steps *s); /* frees everything; a zeroed one is fine */

/* A launch of a pass whose kernels read steps: what its predicted time depends on. */
struct step_launch {
    const struct machine *machine;
    enum machine_pass pass;
    uint32_t head_dim, batch;
    uint32_t rows, columns; /* of the pass */
    uint32_t heads, n_masks;
    const uint32_t *at; /* as in struct step_source */
};
/* Like steps_build(), with the shape of the least predicted time for all layers. Returns its index. */
uint32_t steps_choose(const struct step_source *s, const struct step_launch *l,
                      const struct step_shape *const *shapes, uint32_t count,
                      struct plan_steps *ret);
/* Predicted seconds over a layer, and clocks of the block that ends last. */
double steps_seconds(const struct step_launch *l, const struct step_shape *shape,
                     const struct plan_steps *t, uint32_t layer);
double steps_clocks(const struct step_launch *l, const struct step_shape *shape,
                    const struct plan_steps *t, uint32_t layer);
/* Predicted seconds for so many heads of mask `which`. */
double steps_mask_seconds(const struct step_launch *l, const struct step_shape *shape,
                          const struct plan_steps *t, uint32_t which, double heads);
/* The same where all tiles are visited, `partial` of them (a share) under a pattern; 0: a dense mask. */
double steps_dense_seconds(const struct step_launch *l, const struct step_shape *shape,
                           double heads, double partial);

/* Row blocks of the group. */
uint32_t group_row_blocks(const struct abi_group *g);
/* True if the row block has something in the step. */
bool step_has(const struct abi_step *s, uint32_t row_block);

/* One line of text, and an object: the shape, and what a sequence of the first layer has. */
void steps_print(const struct step_launch *l, const struct step_shape *shape,
                 const struct plan_steps *t, struct text *out);
json_t *steps_json(const struct step_launch *l, const struct step_shape *shape,
                   const struct plan_steps *t);
