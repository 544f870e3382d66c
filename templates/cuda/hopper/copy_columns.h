/* SPDX-License-Identifier: Apache-2.0 */
/* The copying warp, columns: two operands by boxes, patterns, LSE and delta. */
#ifndef MASKC_CUDA_HOPPER_COPY_COLUMNS_H
#define MASKC_CUDA_HOPPER_COPY_COLUMNS_H
#include "cuda/hopper/instance.h"

/* ---- boxes ---- */

/* `row` is one of the sequence, or ABSENT. */
DEVICE void load_columns_box(const struct copier *c, smem_t to, const struct tensor_map *map,
                             u32 barrier, u32 part, i32 row)
{
    const i32 at = row < 0 ? row : c->first + row;
    tma_load(to + part * column_part(c->k), map, barrier, (i32)(part * HOPPER_PART),
             (i32)c->column_head, at, batch_place(c));
}

/* The columns of slot s one by one: lane l brings column l, or zeros where that does not count. */
DEVICE void load_slot_rows(const struct copier *c, const struct instance *i, smem_t to,
                           const struct stream_maps *maps, u32 barrier, u32 s)
{
    const u32 l = copy_lane(), first = shuffle_u32(i->column, s);
    const u32 there = shuffle_u32(i->word, s) >> l & 1;
    i32 row = ABSENT;
    if (there)
        row = (i32)(first & ABI_GATHERED ? c->plan->columns[(first & ~ABI_GATHERED) + l]
                                         : first + l);
    UNROLL
    for (u32 part = 0; part < PARTS; part++)
        load_columns_box(c, to + s * HOPPER_SLOT_BYTES + l * 128, &maps->row, barrier, part,
                         row);
}

/* The slots that come row by row: scattered columns, and those in which a sequence ends, since its padding may hold
   anything. */
DEVICE u32 slots_by_rows(const struct copier *c, const struct instance *i)
{
    const u32 crosses = !c->clipped && i->column + SLOT_COLUMNS > column_length(&c->work);
    return warp_or(
        (copy_lane() < c->k->slots && i->word && (i->column & ABI_GATHERED || crosses))
        << copy_lane() % 32);
}

DEVICE void load_slots(const struct copier *c, const struct instance *i, smem_t to,
                       const struct stream_maps *maps, u32 barrier)
{
    const u32 l = copy_lane(), s = l / PARTS % 4, by_rows = slots_by_rows(c, i);
    const u32 live = shuffle_u32(i->word, s), column = shuffle_u32(i->column, s);
    if (l < PARTS * c->k->slots && !(by_rows >> s & 1))
        load_columns_box(c, to + s * HOPPER_SLOT_BYTES, &maps->tile, barrier, l % PARTS,
                         live ? (i32)column : ABSENT);
    NO_UNROLL
    for (u32 r = 0; by_rows && r < c->k->slots; r++)
        if (by_rows >> r & 1)
            load_slot_rows(c, i, to, maps, barrier, r);
}

DEVICE void load_columns(const struct copier *c, const struct instance *i, u32 operand,
                         u32 barrier)
{
    const smem_t to = c->base + columns_at(c->k, c->stage.at, operand);
    const struct stream_maps *maps = &c->a->columns[operand];
    const u32 column = shuffle_u32(i->column, 0);
    if (!(i->whole & INSTANCE_RUN))
        load_slots(c, i, to, maps, barrier);
    else if (copy_lane() < PARTS)
        load_columns_box(c, to, &maps->run, barrier, copy_lane(), (i32)column);
}

DEVICE void load_patterns(const struct copier *c, const struct instance *i, u32 barrier)
{
    const u32 place = copy_lane() - WORD_PATTERN;
    const smem_t to = c->base + patterns_at(c->k, c->stage.at, place / 4 % 4);
    if (copy_lane() >= WORD_PATTERN && i->word >= ABI_SLOT_PATTERN)
        bulk_load(to + place % 4 * HOPPER_PATTERN_BYTES,
                  c->plan->patterns + (u64)(i->word - ABI_SLOT_PATTERN) * HOPPER_ROWS,
                  HOPPER_PATTERN_BYTES, barrier);
}

/* ---- LSE and delta of the columns: two planes that dQ writes (delta first) ---- */

DEVICE u64 delta_plane(const struct abi_args *a)
{
    return (u64)a->batch * a->heads * a->delta_rows;
}

/* Bit s: slot s is gathered. */
DEVICE u32 gathered_slots(const struct copier *c, const struct instance *i)
{
    return warp_or((copy_lane() < c->k->slots && i->word && i->column >> 31)
                   << copy_lane() % 32);
}

/* Numbers of gathered columns, by ordinary stores. */
DEVICE void gather_numbers(const struct copier *c, const struct instance *i, u32 gathered)
{
    const float *delta = delta_of(&c->a->a, &c->work), *lse = delta + delta_plane(&c->a->a);
    const u32 l = copy_lane();
    NO_UNROLL
    for (u32 s = 0; s < c->k->slots; s++) {
        const smem_t to = c->base + numbers_at(c->k, c->stage.at) + 4 * (s * SLOT_COLUMNS + l);
        const u32 there = shuffle_u32(i->word, s) >> l & 1, first = shuffle_u32(i->column, s);
        if (!(gathered >> s & 1))
            continue;
        const u32 at = there ? c->plan->columns[(first & ~ABI_GATHERED) + l] : 0;
        smem_put_f32(to, lse[at]);
        smem_put_f32(to + 4 * c->k->slots * SLOT_COLUMNS, delta[at]);
    }
    async_fence(); /* bulk copies write here later */
}

/* Numbers of the other slots; where a slot is empty any numbers. */
DEVICE void load_numbers(const struct copier *c, const struct instance *i, u32 gathered,
                         u32 barrier)
{
    const u32 l = copy_lane(), s = l / 2 % 4, which = l % 2;
    const u32 live = shuffle_u32(i->word, s), column = shuffle_u32(i->column, s);
    const float *plane = delta_of(&c->a->a, &c->work) + (which ? 0 : delta_plane(&c->a->a));
    const smem_t to = c->base + numbers_at(c->k, c->stage.at);
    if (l < 2 * c->k->slots && !(gathered >> s & 1))
        bulk_load(to + 4 * (which * c->k->slots + s) * SLOT_COLUMNS,
                  plane + (live ? column : 0), 4 * SLOT_COLUMNS, barrier);
}

#endif
