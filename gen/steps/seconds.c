/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds of a launch over steps. Three things bound it, and the slowest hides most of the others: the clocks of the block
   that ends last, the bytes that blocks bring from the L2 cache, and the tensors that pass through memory once. */
#include "gen/steps/internal.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdlib.h>

/* H100 constants; from the fit that the clocks of kernel shapes come from (gen/family/cuda_hopper.c). */
#define L2_BYTES 6.5e12 /* B/s into shared memory */
#define OVERLAP  4 /* the norm that joins the bounds: 1 adds them, infinity takes the largest */

/* Above this many places the loads of the blocks are equal enough: the mean is the prediction. */
enum { EXACT_PLACES = 1 << 17 };

/* Demand of a launch. */
struct load {
    double clocks; /* of the block that ends last */
    double bytes;  /* from L2 */
};

static uint32_t count_blocks(const struct step_launch *l, const struct step_shape *shape)
{
    const uint32_t processors = l->machine->processors;
    return (processors ? processors : STEP_PROCESSORS) * shape->blocks;
}

/* ---- bytes ---- */

/* Bytes of 16-bit tensors that a row of `operands` has. */
static double row_bytes(const struct step_launch *l, uint32_t operands)
{
    return 2.0 * operands * l->head_dim;
}

/* A column brings two operands, in dK and dV its LSE and delta too. */
static double column_bytes(const struct step_launch *l)
{
    return row_bytes(l, 2) + (l->pass == PASS_DKV ? 2 * sizeof(float) : 0);
}

/* A slot with a pattern brings a word for each row. */
static double step_bytes(const struct step_launch *l, const struct abi_step *s)
{
    double bytes = 0;
    for (uint32_t k = 0; k < ABI_STEP_SLOTS; k++) {
        const bool gathered = s->column[k] & ABI_GATHERED;
        const int columns = gathered ? __builtin_popcount(s->live[k]) : ABI_TILE_COLS;
        bytes += s->live[k] ? columns * column_bytes(l) : 0;
        for (uint32_t i = 0; i < ABI_GROUP_BLOCKS; i++)
            bytes += s->pattern[i][k] >= ABI_SLOT_PATTERN ? STEP_ROWS * sizeof(u32) : 0;
    }
    return s->times * bytes;
}

/* Row operands and results: Q and O forward, twice as many backward. */
static double group_row_bytes(const struct step_launch *l, const struct step_shape *shape)
{
    const uint32_t operands = l->pass == PASS_FORWARD ? 2 : 4;
    return row_bytes(l, operands) * STEP_ROWS * shape->warpgroups;
}

static double group_bytes(const struct step_launch *l, const struct step_shape *shape,
                          const struct plan_steps *t, const struct abi_group *g)
{
    double bytes = group_row_bytes(l, shape);
    for (u32 k = g->step; k < g->step + g->steps; k++)
        bytes += step_bytes(l, &t->steps[k]);
    return bytes;
}

static double mask_bytes(const struct step_launch *l, const struct step_shape *shape,
                         const struct plan_steps *t, uint32_t which)
{
    double bytes = 0;
    for (u32 g = t->group_first[which]; g < t->group_first[which + 1]; g++)
        bytes += group_bytes(l, shape, t, &t->groups[g]);
    return bytes;
}

/* ---- clocks ---- */

/* The block of a place; every other round runs backwards over the blocks (templates/cuda/hopper). */
static uint32_t block_of(uint64_t place, uint32_t blocks)
{
    const uint32_t at = (uint32_t)(place % blocks);
    return place / blocks % 2 ? blocks - 1 - at : at;
}

static double exact_clocks(const struct plan_steps *t, uint64_t first, uint64_t count,
                           uint32_t batch, uint32_t blocks)
{
    double *sum = memory_new(blocks, sizeof *sum), longest = 0;
    for (uint64_t place = 0; place < count * batch; place++)
        sum[block_of(place, blocks)] += t->groups[t->work[first + place / batch].item].cost;
    for (uint32_t k = 0; k < blocks; k++)
        longest = sum[k] > longest ? sum[k] : longest;
    free(sum);
    return longest;
}

static double longest_block(const struct plan_steps *t, uint32_t layer, uint32_t batch,
                            uint32_t blocks)
{
    const uint64_t first = t->layer_work[layer][0], count = t->layer_work[layer][1];
    double sum = 0, longest = 0;
    if (count * batch <= EXACT_PLACES)
        return exact_clocks(t, first, count, batch, blocks);
    for (uint64_t k = first; k < first + count; k++) {
        const double cost = t->groups[t->work[k].item].cost;
        sum += cost * batch;
        longest = cost > longest ? cost : longest;
    }
    return fmax(sum / blocks, longest);
}

double steps_clocks(const struct step_launch *l, const struct step_shape *shape,
                    const struct plan_steps *t, uint32_t layer)
{
    return longest_block(t, layer, l->batch, count_blocks(l, shape));
}

/* ---- seconds ---- */

/* Two tensors of columns; of rows two forward, and four in dQ, and in dK and dV. */
static double memory_seconds(const struct step_launch *l, double heads)
{
    const uint32_t tensors = l->pass == PASS_FORWARD ? 2 : 4;
    const double bytes = row_bytes(l, tensors) * l->rows + row_bytes(l, 2) * l->columns;
    return bytes * heads / l->machine->bytes;
}

static double join(const struct step_launch *l, struct load load, double heads)
{
    const double bound[] = {load.clocks / STEP_CLOCK, load.bytes / L2_BYTES,
                            memory_seconds(l, heads)};
    double sum = 0;
    for (size_t k = 0; k < sizeof bound / sizeof *bound; k++)
        sum += pow(bound[k], OVERLAP);
    return pow(sum, 1.0 / OVERLAP);
}

double steps_seconds(const struct step_launch *l, const struct step_shape *shape,
                     const struct plan_steps *t, uint32_t layer)
{
    const uint32_t *at = l->at + (size_t)layer * l->heads;
    double *of_mask = memory_new(l->n_masks, sizeof *of_mask);
    struct load load = {steps_clocks(l, shape, t, layer), 0};
    for (uint32_t h = 0; h < l->heads; h++) {
        if (of_mask[at[h]] <= 0)
            of_mask[at[h]] = mask_bytes(l, shape, t, at[h]) * l->batch;
        load.bytes += of_mask[at[h]];
    }
    free(of_mask);
    return join(l, load, (double)l->heads * l->batch);
}

double steps_mask_seconds(const struct step_launch *l, const struct step_shape *shape,
                          const struct plan_steps *t, uint32_t which, double heads)
{
    double sum = 0, longest = 0;
    for (u32 g = t->group_first[which]; g < t->group_first[which + 1]; g++) {
        sum += t->groups[g].cost;
        longest = fmax(longest, t->groups[g].cost);
    }
    const struct load load = {fmax(sum * heads / count_blocks(l, shape), longest),
                              mask_bytes(l, shape, t, which) * heads};
    return join(l, load, heads);
}

double steps_dense_seconds(const struct step_launch *l, const struct step_shape *shape,
                           double heads, double partial)
{
    const struct step_clocks *c = &shape->clocks;
    const double rows = l->rows, columns = l->columns;
    const double groups = ceil(rows / (STEP_ROWS * shape->warpgroups)) * heads;
    const double steps = ceil(columns / (ABI_TILE_COLS * shape->slots));
    const double of_step =
        c->step + (double)(shape->in_turn ? c->turn : c->row_block) * shape->warpgroups +
        c->pattern * fmin(1, partial * shape->slots) * shape->warpgroups;
    const struct load load = {ceil(groups / count_blocks(l, shape)) *
                                  (c->group + steps * of_step),
                              groups * (group_row_bytes(l, shape) + columns * column_bytes(l))};
    return join(l, load, heads);
}
