/* SPDX-License-Identifier: Apache-2.0 */
/* The copying warp. It alone reads groups and steps, and runs ahead of the warpgroups:

       for each work of the block:
           find_rows, tell_item, load_rows     what is known about the group's item, and its row operands
           for each step that has live columns:
               copy_step             two operands of the columns, patterns, LSE and delta, what each warpgroup has there */
#ifndef MASKC_CUDA_HOPPER_COPY_H
#define MASKC_CUDA_HOPPER_COPY_H
#include "cuda/hopper/copy_columns.h"
#include "cuda/hopper/copy_rows.h"

/* ---- a step ---- */

DEVICE void tell_step(const struct copier *c, const struct instance *i, u32 last)
{
    const smem_t to = c->base + step_about_at(c->k, c->stage.at);
    const u32 l = copy_lane();
    if (l < WORD_PATTERN + ABI_GROUP_BLOCKS)
        smem_put_u32(to + 4 * l, l < WORD_PATTERN ? i->word : i->mode | (last ? MODE_LAST : 0));
}

DEVICE u32 stage_barrier(const struct copier *c, u32 index)
{
    return c->base + barrier_at(c->k, index);
}

/* Bytes of a step that count in the barrier of its first operand. */
DEVICE u32 step_bytes(const struct copier *c, const struct instance *i)
{
    const struct kernel_shape *k = c->k;
    u32 bytes = (3 - k->stage_parts) * column_bytes(k) +
                HOPPER_PATTERN_BYTES * bit_count(i->some >> 16);
    if (k->numbers)
        bytes += HOPPER_SUMS_BYTES(1, 1) * (k->slots - bit_count(i->gathered));
    return bytes;
}

/* The second operand, where it has a barrier of its own. */
DEVICE void copy_second(const struct copier *c, const struct instance *i,
                        const i32 row[ABI_STEP_SLOTS])
{
    const u32 barrier = stage_barrier(c, stage_full(c->k, c->stage.at, 1));
    mbarrier_wait(stage_barrier(c, stage_empty(c->k, c->stage.at, 1)), c->stage.phase);
    if (elect()) {
        mbarrier_expect(barrier, column_bytes(c->k));
        load_boxes(c, i, row, 1, barrier);
    }
    if (i->by_rows)
        load_by_rows(c, i, 1, barrier);
}

/* The first operand, and with one barrier for both the second one too. */
DEVICE void copy_first(const struct copier *c, const struct instance *i,
                       const i32 row[ABI_STEP_SLOTS])
{
    const u32 barrier = stage_barrier(c, stage_full(c->k, c->stage.at, 0));
    const u32 operands = 3 - c->k->stage_parts;
    if (elect()) {
        mbarrier_expect(barrier, step_bytes(c, i));
        UNROLL
        for (u32 operand = 0; operand < operands; operand++)
            load_boxes(c, i, row, operand, barrier);
        if (c->k->numbers)
            load_numbers(c, i, row, barrier);
    }
    UNROLL
    for (u32 operand = 0; operand < operands && i->by_rows; operand++)
        load_by_rows(c, i, operand, barrier);
    if (i->some >> 16)
        load_patterns(c, i, barrier);
}

DEVICE void copy_step(struct copier *c, const struct instance *i, u32 last)
{
    i32 row[ABI_STEP_SLOTS];
    UNROLL
    for (u32 s = 0; s < c->k->slots; s++)
        row[s] = (i32)shuffle_u32((u32)i->row, s);
    mbarrier_wait(stage_barrier(c, stage_empty(c->k, c->stage.at, 0)), c->stage.phase);
    tell_step(c, i, last);
    if (c->k->numbers && i->gathered)
        gather_numbers(c, i);
    SYNC_WARP();
    copy_first(c, i, row);
    if (c->k->stage_parts == 2)
        copy_second(c, i, row);
    ring_advance(&c->stage, c->k->stages);
}

/* Tells the warpgroups an empty last step. The step before was not told as the last: only
   afterwards did it turn out that the sequence's length leaves nothing of the other steps. */
DEVICE void copy_end(struct copier *c)
{
    const smem_t to = c->base + step_about_at(c->k, c->stage.at) + STEP_MODE;
    const u32 l = copy_lane();
    UNROLL
    for (u32 part = 0; part < c->k->stage_parts; part++) {
        mbarrier_wait(stage_barrier(c, stage_empty(c->k, c->stage.at, part)), c->stage.phase);
        if (part == 0 && l < ABI_GROUP_BLOCKS)
            smem_put_u32(to + 4 * l, MODE_NOTHING | MODE_LAST);
        SYNC_WARP();
        mbarrier_arrive_if(stage_barrier(c, stage_full(c->k, c->stage.at, part)), l == 0);
    }
    ring_advance(&c->stage, c->k->stages);
}

/* Which sequence and head. */
DEVICE void find_sequence(struct copier *c, u32 b, u32 h)
{
    const struct abi_args *a = &c->a->a;
    const u32 keys = c->k->rows_are_keys;
    c->work.b = b;
    c->work.h = h;
    work_item_sequence(&c->work, a, keys);
    c->first = (i32)c->work.first;
    c->row_head = keys ? head_in(a, &a->k, h) : h;
    c->column_head = keys ? h : head_in(a, &a->k, h);
    c->batch = a->offsets ? 0 : (i32)b;
    c->whole = ends_with_tensor(c) && c->work.length == c->plan->n &&
               column_length(&c->work) == c->plan->n;
}

/* place / slice_batch, by its reciprocal: the estimate is right or one too small. */
DEVICE u32 entry_of(const struct copier *c, u32 place, u32 *rest)
{
    const u32 batch = c->a->a.slice_batch, entry = (u32)((u64)place * c->reciprocal >> 32);
    const u32 left = place - entry * batch;
    *rest = left < batch ? left : left - batch;
    return left < batch ? entry : entry + 1;
}

/* more_works: another one follows. */
DEVICE void copy_work(struct copier *c, u32 place, u32 more_works)
{
    const struct abi_args *a = &c->a->a;
    u32 sequence;
    const struct abi_work entry = c->a->steps.work[entry_of(c, place, &sequence)];
    const struct abi_group *group = c->a->steps.groups + entry.item;
    struct step_walk walk = walk_start(c, group);
    struct instance step;
    find_sequence(c, a->first_batch + sequence, entry.head);
    const smem_t about = c->base + item_about_at(c->k, c->rows.at);
    const u32 full = c->base + barrier_at(c->k, rows_full(c->rows.at));
    mbarrier_wait(c->base + barrier_at(c->k, rows_empty(c->k, c->rows.at)), c->rows.phase);
    find_rows(c, group, about);
    c->in_turn = c->k->in_turn && group->in_turn && c->alive == (1u << c->k->warpgroups) - 1;
    u32 more = walk_next(c, &walk, &step), last = 1;
    tell_item(c, about, more, more_works);
    SYNC_WARP();
    if (copy_lane() == 0)
        mbarrier_expect(full, c->k->operands * ROW_BYTES * bit_count(c->alive));
    SYNC_WARP();
    load_rows(c, full);
    ring_advance(&c->rows, c->k->row_buffers);
    NO_UNROLL
    while (more) {
        last = walk_ended(&walk);
        copy_step(c, &step, last);
        more = walk_next(c, &walk, &step);
    }
    if (!last)
        copy_end(c);
}

DEVICE void copy_works(const struct hopper_args *a, const struct kernel_shape *k, smem_t base)
{
    struct copier c;
    const u32 count = work_count(a);
    c.a = a;
    c.k = k;
    c.plan = k->rows_are_keys ? &a->a.transposed : &a->a.forward;
    c.base = base;
    c.reciprocal = 0xffffffffu / a->a.slice_batch;
    c.rows.at = c.stage.at = 0;
    c.rows.phase = c.stage.phase = 1; /* a fresh barrier lets the first wait pass */
    NO_UNROLL
    for (u32 round = 0, place = BLOCK; place < count; round++) {
        const u32 next = work_place(round + 1);
        copy_work(&c, place, next < count);
        place = next;
    }
}

#endif
