/* SPDX-License-Identifier: Apache-2.0 */
/* The two products of attention over a column tile: dot products (rows times columns) and sums (entries times
   columns). Columns of a tile are read from shared memory, those of lines from the tensor. */
#ifndef MASKC_CUDA_SIMT_PRODUCTS_H
#define MASKC_CUDA_SIMT_PRODUCTS_H
#include "cuda/simt/tensor.h"
#include "cuda/simt/tf32.h"
#include "cuda/simt/walk.h"

DEVICE void slots_clear(struct slots *s)
{
    UNROLL
    for (u32 k = 0; k < SLOTS; k++)
        s->at[k] = 0;
}

/* True if the column that the quad loads exists. */
DEVICE u32 tile_has_row(const struct column_tile *ct, const struct work_item *work)
{
    return ct->columns ? quad() < ct->end : (u32)ct->column + quad() < column_length(work);
}

/* Loads a tile's columns to shared memory; lines are not loaded. Its barriers also separate the load of the
   block's own rows from their use. */
DEVICE void fetch(float *tile, const struct view *v, const struct column_tile *ct,
                  const struct work_item *work)
{
    if (!ct->is_tile)
        return;
    u32 there = tile_has_row(ct, work), column = there ? slot_column(ct, quad()) : 0;
    SYNC();
    load_row(tile, v, column, there);
    SYNC();
}

/* Both operands of a column tile at once. */
DEVICE void fetch_two(float *to_a, const struct view *a, float *to_b, const struct view *b,
                      const struct column_tile *ct, const struct work_item *work)
{
    if (!ct->is_tile)
        return;
    u32 there = tile_has_row(ct, work), column = there ? slot_column(ct, quad()) : 0;
    SYNC();
    load_row(to_a, a, column, there);
    load_row(to_b, b, column, there);
    SYNC();
}

DEVICE void dots_of_tile(struct slots *ret, const float *row, const float *tile)
{
    const float *own = row + quad() * PITCH;
    const float *columns = tile + 2 * quad_lane() * PITCH;
    slots_clear(ret);
    NO_UNROLL
    for (u32 d = 0; d < HEAD_DIM; d += 4) {
        struct f4 x = shared_get4(own + d);
        UNROLL
        for (u32 k = 0; k < SLOTS; k++)
            ret->at[k] = dot4(ret->at[k], x, shared_get4(columns + slot_of(k, 0) * PITCH + d));
    }
}

/* One dot product, by a quad; all its lanes get it. */
DEVICE float dot_of_line(const float *row, const struct view *v, u32 column, u32 there)
{
    const float *own = row + quad() * PITCH;
    float sum = 0;
    UNROLL_4
    for (u32 k = 0; k < CHUNKS; k++) {
        u32 d = chunk_of(k);
        if (there && d < HEAD_DIM)
            sum = dot4(sum, shared_get4(own + d), load4(v, column, d));
    }
    return quad_sum(sum);
}

DEVICE void dots_of_lines(struct slots *ret, const float *row, const struct column_tile *ct,
                          const struct view *v)
{
    slots_clear(ret);
    NO_UNROLL
    for (u32 s = 0; s < ct->end; s++) {
        u32 there = ct->bits >> s & 1;
        float x = dot_of_line(row, v, there ? slot_column(ct, s) : 0, there);
        UNROLL
        for (u32 k = 0; k < SLOTS; k++)
            ret->at[k] = slot_of(k, quad_lane()) == s ? x : ret->at[k];
    }
}

/* ret = row . column for each slot. `row` is a shared tile of rows, `tile` one of loaded columns. Slots that the
   row does not see hold anything finite. */
DEVICE void dots(struct slots *ret, const float *row, const float *tile,
                 const struct column_tile *ct, const struct view *v)
{
    if (ct->is_tile && TF32)
        dots_by_tf32(ret, row, tile);
    else if (ct->is_tile)
        dots_of_tile(ret, row, tile);
    else
        dots_of_lines(ret, row, ct, v);
}

/* Rotates: the first slot becomes the last. A loop over rotated slots indexes no registers. */
DEVICE void slots_rotate(struct slots *s)
{
    const float first = s->at[0];
    UNROLL
    for (u32 k = 1; k < SLOTS; k++)
        s->at[k - 1] = s->at[k];
    s->at[SLOTS - 1] = first;
}

/* sums += entries times columns of a tile; entries are 0 where the row does not see. */
DEVICE void accumulate_tile(struct sums *sums, const struct slots *entries, const float *tile)
{
    struct slots rotating = *entries;
    UNROLL_BY(SLOTS_UNROLLED)
    for (u32 k = 0; k < SLOTS; k++, slots_rotate(&rotating)) {
        NO_UNROLL
        for (u32 u = 0; u < QUAD; u++) {
            float w = quad_from(rotating.at[0], u);
            const float *column = tile + slot_of(k, u) * PITCH;
            UNROLL
            for (u32 c = 0; c < CHUNKS; c++) {
                if (chunk_of(c) < HEAD_DIM)
                    sums->at[c] = fma4(sums->at[c], shared_get4(column + chunk_of(c)), w);
            }
        }
    }
}

/* The entry of slot s, in all lanes of the quad. */
DEVICE float slot_entry(const struct slots *entries, u32 s)
{
    u32 place = (s & 1) + 2 * (s >> 3);
    float w = 0;
    UNROLL
    for (u32 k = 0; k < SLOTS; k++)
        w = place == k ? entries->at[k] : w;
    return quad_from(w, s >> 1 & 3);
}

DEVICE void accumulate_lines(struct sums *sums, const struct slots *entries,
                             const struct column_tile *ct, const struct view *v)
{
    NO_UNROLL
    for (u32 s = 0; s < ct->end; s++) {
        float w = slot_entry(entries, s);
        u32 there = ct->bits >> s & 1, column = there ? slot_column(ct, s) : 0;
        UNROLL
        for (u32 c = 0; c < CHUNKS; c++) {
            if (there && chunk_of(c) < HEAD_DIM)
                sums->at[c] = fma4(sums->at[c], load4(v, column, chunk_of(c)), w);
        }
    }
}

DEVICE void accumulate(struct sums *sums, const struct slots *entries, const float *tile,
                       const struct column_tile *ct, const struct view *v)
{
    if (ct->is_tile && TF32_SUMS)
        accumulate_by_tf32(sums, entries, tile);
    else if (ct->is_tile)
        accumulate_tile(sums, entries, tile);
    else
        accumulate_lines(sums, entries, ct, v);
}

/* True if the thread's row sees its slot at place k. */
DEVICE u32 sees(const struct column_tile *ct, u32 k)
{
    return ct->bits >> slot_of(k, quad_lane()) & 1;
}

#endif
