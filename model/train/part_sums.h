/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of the parts of a batch, added up so that 1, 2 and 4 ranks compute the same bits. The batch has PARTS_GROUPS
   groups of parts where their number is a multiple of it, or else as many as divide it. A group's parts are added one
   after another, groups by a binary tree: (0 + 1) + (2 + 3). A rank has whole groups, and sums over ranks
   (model/comm/comm.h) are the upper levels of the tree. */
#pragma once
#include "model/gradients/gradients.h"

enum { PARTS_GROUPS = 4, PARTS_LEVELS = 3 };

/* Parts of a batch over all ranks: at least `accumulate`, as many on each rank. */
uint32_t parts_of_batch(uint32_t accumulate, uint32_t ranks);
/* Groups of each rank. */
uint32_t parts_groups(uint32_t accumulate, uint32_t ranks);
/* Arrays of the size of the gradient that a rank needs beside it. */
uint32_t parts_extra(uint32_t accumulate, uint32_t ranks);

/* Where a level of the tree has its sum. Level 0 is the root: the state's and the bias's own. */
struct part_sums {
    struct training_device device;
    uint32_t threads;
    uint64_t count, bias_count;
    float *gradient[PARTS_LEVELS], *bias[PARTS_LEVELS];
};

/* bias: the gradient of a learned mask's; null: none. */
void part_sums_begin(struct part_sums *p, const struct train_state *s, uint32_t threads,
                     float *bias, uint64_t bias_count);
void part_sums_finish(struct part_sums *p);
/* Makes the zeroed arrays of a level; those that are there stay. */
int part_sums_reserve(struct part_sums *p, uint32_t level, struct error *e);
/* Adds the level below to a level and clears it. */
int part_sums_add(const struct part_sums *p, uint32_t level, bool with_bias, struct error *e);
/* The same for the levels levels - 1 .. 0, one after another: for some elements of the gradient, for the bias. */
int part_sums_add_span(const struct part_sums *p, uint32_t levels, struct span of,
                       struct error *e);
int part_sums_add_bias(const struct part_sums *p, uint32_t levels, struct error *e);
void batch_loss_add(struct batch_loss *to, const struct batch_loss *from);
