/* SPDX-License-Identifier: Apache-2.0 */
/* The copying warp. It alone reads the lists, and runs ahead of the warpgroups:

       for each work of the block:
           copy_rows                 the row operands of the group, and what is known about its item
           for each step that has live columns:
               copy_step             two operands of the columns, patterns, LSE and delta, what each warpgroup has there */
#ifndef MASKC_CUDA_HOPPER_COPY_H
#define MASKC_CUDA_HOPPER_COPY_H
#include "cuda/hopper/copy_columns.h"
#include "cuda/hopper/copy_rows.h"

/* ---- a step ---- */

/* In turn a warpgroup takes part in every step, if only with nothing. */
DEVICE u32 step_mode(const struct copier *c, const struct instance *i, u32 warpgroup)
{
    const u32 all = (1u << c->k->slots) - 1, some = i->some >> 4 * warpgroup & 15;
    if ((i->whole >> 4 * warpgroup & 15) == all)
        return MODE_WHOLE;
    if (!some && !c->in_turn)
        return MODE_NOTHING;
    return MODE_SOME | some << MODE_SLOTS |
           (i->some >> (16 + 4 * warpgroup) & 15) << MODE_PATTERNS;
}

DEVICE void tell_step(const struct copier *c, const struct instance *i, u32 last)
{
    const smem_t to = c->base + step_about_at(c->k, c->stage.at);
    const u32 l = copy_lane();
    if (l < ABI_GROUP_BLOCKS)
        smem_put_u32(to + 4 * l, step_mode(c, i, l));
    if (l < ABI_STEP_SLOTS) {
        smem_put_u32(to + STEP_LIVE + 4 * l, i->word);
        smem_put_u32(to + STEP_COLUMN + 4 * l, i->column);
    }
    if (l == 0)
        smem_put_u32(to + STEP_LAST, last);
}

DEVICE u32 stage_barrier(const struct copier *c, u32 index)
{
    return c->base + barrier_at(c->k, index);
}

/* The second operand, where it has a barrier of its own. */
DEVICE void copy_second(const struct copier *c, const struct instance *i)
{
    const u32 barrier = stage_barrier(c, stage_full(c->k, c->stage.at, 1));
    mbarrier_wait(stage_barrier(c, stage_empty(c->k, c->stage.at, 1)), c->stage.phase);
    if (copy_lane() == 0)
        mbarrier_expect(barrier, column_bytes(c->k));
    SYNC_WARP();
    load_columns(c, i, 1, barrier);
}

DEVICE void copy_step(struct copier *c, const struct instance *i, u32 last)
{
    const struct kernel_shape *k = c->k;
    const u32 barrier = stage_barrier(c, stage_full(k, c->stage.at, 0));
    const u32 gathered = k->numbers ? gathered_slots(c, i) : 0;
    u32 bytes = (3 - k->stage_parts) * column_bytes(k) +
                HOPPER_PATTERN_BYTES * bit_count(i->some >> 16);
    if (k->numbers)
        bytes += HOPPER_SUMS_BYTES(1, 1) * (k->slots - bit_count(gathered));
    mbarrier_wait(stage_barrier(c, stage_empty(k, c->stage.at, 0)), c->stage.phase);
    tell_step(c, i, last);
    if (k->numbers && gathered)
        gather_numbers(c, i, gathered);
    SYNC_WARP();
    if (copy_lane() == 0)
        mbarrier_expect(barrier, bytes);
    SYNC_WARP();
    load_columns(c, i, 0, barrier);
    if (k->stage_parts == 1)
        load_columns(c, i, 1, barrier);
    load_patterns(c, i, barrier);
    if (k->numbers)
        load_numbers(c, i, gathered, barrier);
    if (k->stage_parts == 2)
        copy_second(c, i);
    ring_advance(&c->stage, k->stages);
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
#if RECTANGULAR
    c->clipped = column_length(&c->work) == (keys ? a->queries : a->keys);
#else
    c->clipped = !a->offsets && c->work.length == a->n;
#endif
}

DEVICE void copy_work(struct copier *c, u32 place)
{
    const struct abi_args *a = &c->a->a;
    const struct abi_work entry = c->a->steps.work[place / a->slice_batch];
    const struct abi_group *group = c->a->steps.groups + entry.item;
    struct step_walk walk = {group->step, group->step + group->steps, 0, 0, 0};
    struct instance now, next;
    find_sequence(c, a->first_batch + place % a->slice_batch, entry.head);
    const smem_t about = c->base + item_about_at(c->k, c->rows.at);
    const u32 full = c->base + barrier_at(c->k, rows_full(c->rows.at));
    mbarrier_wait(c->base + barrier_at(c->k, rows_empty(c->k, c->rows.at)), c->rows.phase);
    find_rows(c, group, about);
    c->in_turn = c->k->in_turn && group->in_turn && c->alive == (1u << c->k->warpgroups) - 1;
    u32 more = walk_next(c, &walk, &next);
    tell_item(c, about, more);
    SYNC_WARP();
    if (copy_lane() == 0)
        mbarrier_expect(full, c->k->operands * ROW_BYTES * bit_count(c->alive));
    SYNC_WARP();
    load_rows(c, full);
    ring_advance(&c->rows, c->k->row_buffers);
    NO_UNROLL
    while (more) {
        now = next;
        more = walk_next(c, &walk, &next);
        copy_step(c, &now, !more);
    }
}

DEVICE void copy_works(const struct hopper_args *a, const struct kernel_shape *k, smem_t base)
{
    struct copier c;
    const u32 count = work_count(a);
    c.a = a;
    c.k = k;
    c.plan = k->rows_are_keys ? &a->a.transposed : &a->a.forward;
    c.base = base;
    c.rows.at = c.stage.at = 0;
    c.rows.phase = c.stage.phase = 1; /* a fresh barrier lets the first wait pass */
    NO_UNROLL
    for (u32 round = 0; round * BLOCKS < count; round++) {
        const u32 place = work_place(round);
        if (place < count)
            copy_work(&c, place);
    }
}

#endif
