/* SPDX-License-Identifier: Apache-2.0 */
/* The copying warp, columns: two operands by boxes, patterns, LSE and delta. */
#ifndef MASKC_CUDA_HOPPER_COPY_COLUMNS_H
#define MASKC_CUDA_HOPPER_COPY_COLUMNS_H
#include "cuda/hopper/instance.h"

/* ---- boxes ---- */

/* All parts of the rows from tensor row `row` on, or zeros (ABSENT). */
DEVICE void load_parts(const struct copier *c, smem_t to, const struct tensor_map *map,
                       u32 barrier, i32 row)
{
    UNROLL
    for (u32 part = 0; part < PARTS; part++)
        tma_load(to + part * column_part(c->k), map, barrier, (i32)(part * HOPPER_PART),
                 (i32)c->column_head, row, c->batch);
}

/* By one lane: what comes by boxes. row[s]: where slot s begins. */
DEVICE void load_boxes(const struct copier *c, const struct instance *i,
                       const i32 row[ABI_STEP_SLOTS], u32 operand, u32 barrier)
{
    const smem_t to = c->base + columns_at(c->k, c->stage.at, operand);
    const struct stream_maps *maps = &c->a->columns[operand];
    if (i->run) {
        load_parts(c, to, &maps->run, barrier, row[0]);
        return;
    }
    UNROLL
    for (u32 s = 0; s < c->k->slots; s++)
        if (!(i->by_rows >> s & 1))
            load_parts(c, to + s * HOPPER_SLOT_BYTES, &maps->tile, barrier, row[s]);
}

/* The columns of slot s one by one: lane l brings column l, or zeros where that does not count. */
DEVICE void load_slot_rows(const struct copier *c, const struct instance *i, smem_t to,
                           const struct tensor_map *map, u32 barrier, u32 s)
{
    const u32 l = copy_lane(), first = shuffle_u32(i->word, s);
    const u32 there = shuffle_u32(i->word, WORD_LIVE + s) >> l & 1;
    i32 row = ABSENT;
    if (there)
        row = c->first + (i32)(first & ABI_GATHERED
                                   ? c->plan->columns[(first & ~ABI_GATHERED) + l]
                                   : first + l);
    load_parts(c, to + s * HOPPER_SLOT_BYTES + l * 128, map, barrier, row);
}

/* By all lanes: what comes row by row. */
DEVICE void load_by_rows(const struct copier *c, const struct instance *i, u32 operand,
                         u32 barrier)
{
    const smem_t to = c->base + columns_at(c->k, c->stage.at, operand);
    NO_UNROLL
    for (u32 s = 0; i->by_rows >> s; s++)
        if (i->by_rows >> s & 1)
            load_slot_rows(c, i, to, &c->a->columns[operand].row, barrier, s);
}

DEVICE void load_patterns(const struct copier *c, const struct instance *i, u32 barrier)
{
    const u32 place = copy_lane() - WORD_PATTERN;
    const smem_t to = c->base + patterns_at(c->k, c->stage.at, place / 4 % 4);
    if (place < WORD_TIMES - WORD_PATTERN && i->word >= ABI_SLOT_PATTERN)
        bulk_load(to + place % 4 * HOPPER_PATTERN_BYTES,
                  c->plan->patterns + (u64)(i->word - ABI_SLOT_PATTERN) * HOPPER_ROWS,
                  HOPPER_PATTERN_BYTES, barrier);
}

/* ---- LSE and delta of the columns ---- */

DEVICE const float *column_delta(const struct copier *c)
{
    return delta_of(&c->a->a, &c->work);
}

/* Numbers of gathered columns, by ordinary stores. */
DEVICE void gather_numbers(const struct copier *c, const struct instance *i)
{
    const u32 l = copy_lane();
    NO_UNROLL
    for (u32 s = 0; i->gathered >> s; s++) {
        const smem_t to = c->base + numbers_at(c->k, c->stage.at) + 4 * (s * SLOT_COLUMNS + l);
        const u32 there = shuffle_u32(i->word, WORD_LIVE + s) >> l & 1;
        const u32 first = shuffle_u32(i->word, s) & ~ABI_GATHERED;
        if (!(i->gathered >> s & 1))
            continue;
        const float *delta = column_delta(c) + (there ? c->plan->columns[first + l] : 0);
        smem_put_f32(to, delta[delta_plane(&c->a->a)]);
        smem_put_f32(to + 4 * c->k->slots * SLOT_COLUMNS, delta[0]);
    }
    async_fence(); /* bulk copies write here later */
}

/* Both numbers of the columns of `slots` slots from slot s on. */
DEVICE void load_slot_numbers(const struct copier *c, u32 s, u32 slots, i32 row, u32 barrier)
{
    const smem_t to = c->base + numbers_at(c->k, c->stage.at) + 4 * s * SLOT_COLUMNS;
    const float *delta = column_delta(c) + (row < 0 ? 0 : row - c->first);
    bulk_load(to, delta + delta_plane(&c->a->a), slots * 4 * SLOT_COLUMNS, barrier);
    bulk_load(to + 4 * c->k->slots * SLOT_COLUMNS, delta, slots * 4 * SLOT_COLUMNS, barrier);
}

/* By one lane: numbers of the slots that are not gathered; where a slot is empty any numbers. */
DEVICE void load_numbers(const struct copier *c, const struct instance *i,
                         const i32 row[ABI_STEP_SLOTS], u32 barrier)
{
    if (i->run) {
        load_slot_numbers(c, 0, c->k->slots, row[0], barrier);
        return;
    }
    UNROLL
    for (u32 s = 0; s < c->k->slots; s++)
        if (!(i->gathered >> s & 1))
            load_slot_numbers(c, s, 1, row[s], barrier);
}

#endif
