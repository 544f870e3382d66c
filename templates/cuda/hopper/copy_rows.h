/* SPDX-License-Identifier: Apache-2.0 */
/* The copying warp: loads the row operands of a group, and writes to shared memory what the warpgroups must know about its items. */
#ifndef MASKC_CUDA_HOPPER_COPY_ROWS_H
#define MASKC_CUDA_HOPPER_COPY_ROWS_H
#include "cuda/hopper/instance.h"

/* ---- the rows of a group ---- */

DEVICE u32 all_rows(u32 rows, u32 word)
{
    return rows <= 32 * word ? 0 : bits_between(0, smaller(32, rows - 32 * word));
}

/* All rows of the mask in a row block are the item's. */
DEVICE u32 owns_block(const struct copier *c, const struct abi_item *item)
{
    const u32 rows = item->rows;
    if (item->split)
        return 0;
    if ((item->own[0] & item->own[1]) == 0xffffffffu)
        return 1;
    return item->row0 + rows == c->plan->n && item->own[0] == all_rows(rows, 0) &&
           item->own[1] == all_rows(rows, 1);
}

/* Lane g reads warpgroup g's item and tells of it. */
DEVICE void find_rows(struct copier *c, const struct abi_group *group, smem_t to)
{
    const u32 l = copy_lane(),
              there = l < c->k->warpgroups && group->item[l % 4] != ABI_NO_ITEM;
    u32 own[2] = {0, 0};
    c->flags = c->row0 = 0;
    if (there) {
        const struct abi_item *item = c->plan->items + group->item[l % 4];
        const u32 end = item->row0 + HOPPER_ROWS;
        own[0] = item->own[0];
        own[1] = item->own[1];
        c->row0 = item->row0;
        c->flags = ROWS_THERE | (end > c->work.length ? ROWS_CROSS : 0);
        if (item->split) {
            c->flags |= ROWS_PARTIAL;
            own[1] = item->partial_slot;
        }
        if (owns_block(c, item) && !(c->a->a.offsets && end > c->work.exist))
            c->flags |= ROWS_BY_BOX;
    }
    c->alive = warp_or((there && c->row0 < c->work.length) << l % 32);
    if (l < c->k->warpgroups) {
        const struct u32x4 x = {c->row0, own[0], own[1], c->flags};
        smem_put_u32x4(to + 16 * l, x);
    }
}

/* Where numbers of the rows are, which the warpgroups would compute four times. */
DEVICE void tell_places(const struct copier *c, smem_t to)
{
    const struct abi_args *a = &c->a->a;
    const u64 lse = (u64)((const u8 *)lse_of(a, &c->work) - (const u8 *)a->lse);
    const u64 delta = c->k->operands == HOPPER_QUERY_OPERANDS
                          ? (u64)((const u8 *)delta_of(a, &c->work) - (const u8 *)a->delta)
                          : 0;
    const struct u32x4 x = {(u32)lse, (u32)(lse >> 32), (u32)delta, (u32)(delta >> 32)};
    smem_put_u32x4(to + ITEM_PLACES, x);
    if (c->k->operands == HOPPER_QUERY_OPERANDS) {
        const u64 scaled = delta + 4 * delta_plane(a);
        const struct u32x4 y = {(u32)scaled, (u32)(scaled >> 32), 0, 0};
        smem_put_u32x4(to + ITEM_PLACES + 16, y);
    }
}

DEVICE void tell_item(const struct copier *c, smem_t to, u32 steps, u32 more)
{
    const struct u32x4 x = {c->work.b, c->work.h, (u32)c->first, c->work.length};
    const struct u32x4 y = {c->work.exist, c->in_turn, steps, more};
    if (copy_lane() == 0) {
        smem_put_u32x4(to + ITEM_COMMON, x);
        smem_put_u32x4(to + ITEM_MORE, y);
        if (!c->k->rows_are_keys)
            tell_places(c, to);
    }
}

/* Loads one by one the rows of a row block in which a packed sequence ends: rows past its end
   become zeros. */
DEVICE void load_rows_single(const struct copier *c, smem_t to, u32 operand, u32 part, u32 row0,
                             u32 barrier)
{
    NO_UNROLL
    for (u32 r = copy_lane(); r < HOPPER_ROWS; r += 32) {
        const u32 there = row0 + r < c->work.length;
        tma_load(to + r * 128, &c->a->row[operand], barrier, (i32)(part * HOPPER_PART),
                 (i32)c->row_head, there ? c->first + (i32)(row0 + r) : ABSENT, c->batch);
    }
}

/* Lane (operand, warpgroup, part) loads a box. If a packed sequence ends in the row block, all
   lanes load its rows one by one instead. */
DEVICE void load_rows(const struct copier *c, u32 barrier)
{
    const struct kernel_shape *k = c->k;
    const u32 l = copy_lane(), part = l % PARTS, g = l / PARTS % k->warpgroups;
    const u32 operand = l / PARTS / k->warpgroups, row0 = shuffle_u32(c->row0, g);
    const u32 mine = operand < k->operands && c->alive >> g & 1;
    const u32 single = c->a->a.offsets && row0 + HOPPER_ROWS > c->work.length;
    u32 singles = warp_or((mine && single) << l);
    if (mine && !single)
        tma_load(c->base + rows_at(k, c->rows.at, operand, g) + part * HOPPER_BOX_BYTES,
                 &c->a->rows[operand], barrier, (i32)(part * HOPPER_PART), (i32)c->row_head,
                 c->first + (i32)row0, c->batch);
    NO_UNROLL
    for (u32 x = 0; singles; x++, singles >>= 1) {
        const u32 of = x / PARTS / k->warpgroups, by = x / PARTS % k->warpgroups;
        const u32 first = shuffle_u32(c->row0, by);
        if (singles & 1)
            load_rows_single(
                c, c->base + rows_at(k, c->rows.at, of, by) + x % PARTS * HOPPER_BOX_BYTES, of,
                x % PARTS, first, barrier);
    }
}

#endif
