/* SPDX-License-Identifier: Apache-2.0 */
/* Global rows: one row that sees very many columns, by the whole block, in float. A lane group takes a few
   columns at a time, each lane 16 bytes of them, and keeps its own state, which is reduced in a fixed order at
   the end, in shared memory. Loads have no branches: a lane group without a column takes the last one again,
   with P = 0. */
#ifndef MASKC_CUDA_TILED_GLOBAL_ROW_H
#define MASKC_CUDA_TILED_GLOBAL_ROW_H
#include "cuda/tiled/dropout.h"

enum {
    LANE_GROUP = HEAD_CHUNKS <= 4 ? 4 /* lanes that share a column, at most 8 positions each */
                 : HEAD_CHUNKS <= 8  ? 8
                 : HEAD_CHUNKS <= 16 ? 16
                                     : 32,
    LANE_GROUPS = THREADS / LANE_GROUP,
    COLUMNS_AT_ONCE = 3,                   /* columns that a lane group takes at once */
    ROW_PITCH = HEAD_DIM + 4,              /* floats */
    ROW_NUMBERS = LANE_GROUPS * ROW_PITCH, /* after the sums: one for each lane group */
    ROW_FLOATS = ROW_NUMBERS + LANE_GROUPS,
};

/* A lane's part of a sum over columns. */
struct part {
    float at[8];
};

/* Optimisation barriers: computed for each global row, not held in registers through row blocks. */
DEVICE u32 lane_group(void)
{
    return opt_barrier(THREAD) / LANE_GROUP;
}

DEVICE float lane_group_sum(float x)
{
    UNROLL
    for (u32 step = 1; step < LANE_GROUP; step *= 2)
        x += SHUFFLE_XOR(x, step);
    return x;
}

/* The lane's chunk of 8 positions of a row. */
DEVICE u32 lane_chunk(void)
{
    return opt_barrier(THREAD) % LANE_GROUP;
}

DEVICE void part_clear(struct part *p)
{
    UNROLL
    for (u32 k = 0; k < 8; k++)
        p->at[k] = 0;
}

DEVICE void part_scale(struct part *p, float by)
{
    UNROLL
    for (u32 k = 0; k < 8; k++)
        p->at[k] *= by;
}

/* The lane's part of a column. */
DEVICE struct u32x4 load_part(const struct view *v, u32 column)
{
    return *(const struct u32x4 *)(v->data + column * v->row);
}

DEVICE void unpack_chunk(float ret[8], const struct u32x4 *x)
{
    ret[0] = half_low(x->x);
    ret[1] = half_high(x->x);
    ret[2] = half_low(x->y);
    ret[3] = half_high(x->y);
    ret[4] = half_low(x->z);
    ret[5] = half_high(x->z);
    ret[6] = half_low(x->w);
    ret[7] = half_high(x->w);
}

/* operand . column, the same in the lane group. */
DEVICE float part_dot(const struct part *operand, const struct u32x4 *column)
{
    float sum = 0, x[8];
    unpack_chunk(x, column);
    UNROLL
    for (u32 k = 0; k < 8; k++)
        sum += operand->at[k] * x[k];
    return lane_group_sum(lane_chunk() < HEAD_CHUNKS ? sum : 0);
}

DEVICE void part_add(struct part *sum, const struct u32x4 *column, float entry)
{
    float x[8];
    unpack_chunk(x, column);
    UNROLL
    for (u32 k = 0; k < 8; k++)
        sum->at[k] += entry * x[k];
}

/* ---- reductions over the block ---- */

/* Sum (or maximum) of the lane groups' values over the block, in a fixed order. */
DEVICE float block_reduce(float x, u32 maximum)
{
    float *numbers = SHARED() + ROW_NUMBERS;
    SYNC();
    if (lane_chunk() == 0)
        shared_put(numbers + lane_group(), x);
    SYNC();
    x = shared_get(numbers);
    NO_UNROLL
    for (u32 r = 1; r < LANE_GROUPS; r++) {
        float y = shared_get(numbers + r);
        x = maximum ? larger(x, y) : x + y;
    }
    return x;
}

DEVICE void put_pair(const struct view *to, const struct work_item *work, u32 d, float low,
                     float high)
{
    if (work->item->row0 < work->exist)
        *(u32 *)(to->data + work->item->row0 * to->row + 2 * d) = half_pack(low, high);
}

/* Writes the sums of all lane groups, each times its `by`, to the item's row; or as floats to `partial`, if that is
   not null. */
DEVICE void store_row(struct part *p, float by, const struct view *to, float *partial,
                      const struct work_item *work)
{
    float *sums = SHARED();
    SYNC();
    UNROLL
    for (u32 k = 0; k < 8; k++) {
        if (lane_chunk() < HEAD_CHUNKS)
            shared_put(sums + lane_group() * ROW_PITCH + 8 * lane_chunk() + k, p->at[k] * by);
    }
    SYNC();
    NO_UNROLL
    for (u32 d = 2 * THREAD; d < HEAD_DIM; d += 2 * THREADS) {
        float low = 0, high = 0;
        NO_UNROLL
        for (u32 r = 0; r < LANE_GROUPS; r++) {
            low += shared_get(sums + r * ROW_PITCH + d);
            high += shared_get(sums + r * ROW_PITCH + d + 1);
        }
        if (partial)
            put_two(partial + d, low, high);
        else
            put_pair(to, work, d, low, high);
    }
}

/* ---- split rows ---- */

/* Where a split item stores its sum 0 or 1; null: it is not split. */
DEVICE float *row_partial(const struct abi_args *a, const struct work_item *work, u32 sum)
{
    return CUT_ROWS && work->item->split ? partial_slot_of(a, work) + sum * PARTIAL_WIDTH : 0;
}

/* Adds the partial sum to the lane's. */
DEVICE void part_merge(struct part *sum, const float *partial)
{
    UNROLL
    for (u32 k = 0; lane_chunk() < HEAD_CHUNKS && k < 8; k += 2) {
        struct f2 x = get_two(partial + 8 * lane_chunk() + k);
        sum->at[k] += x.x;
        sum->at[k + 1] += x.y;
    }
}

DEVICE void row_store_partial(const struct abi_args *a, const struct work_item *work,
                              float first, float second)
{
    if (THREAD == 0)
        put_two(partial_slot_of(a, work) + PARTIAL_NUMBERS, first, second);
}

/* A tensor from the lane's chunk on; from the first where the head has no such chunk. */
DEVICE struct view lane_view(const struct abi_tensor *t, const struct work_item *work)
{
    struct view v = view_of(t, work);
    v.data += lane_chunk() < HEAD_CHUNKS ? 16 * lane_chunk() : 0;
    return v;
}

/* The lane's part of the item's row; zeros where it takes no part. */
DEVICE void load_operand(struct part *ret, const struct abi_tensor *t,
                         const struct work_item *work)
{
    struct view v = lane_view(t, work);
    struct u32x4 x = {0, 0, 0, 0};
    if (work->item->row0 < work->length)
        x = load_part(&v, work->item->row0);
    unpack_chunk(ret->at, &x);
}

/* ---- the walk ---- */

struct row_walk {
    const struct abi_args *a;
    const struct work_item *work;
    struct view first, second; /* columns of these */
    u32 element;               /* the next range */
    u32 column, end; /* of the current range: where the next step begins, and the end */
    u32 place; /* what to add to a column of the range for its place among score columns in the scratch */
    u32 stored; /* score columns up to the end of the current range */
    u32 rows_are_keys;
    u32 group; /* lane_group() */
    u32 at;    /* the lane group's first column of the step */
};

/* Column k of the step, or the last of its range; and whether it exists. */
DEVICE u32 row_column(const struct row_walk *w, u32 k)
{
    return smaller(w->at + k * LANE_GROUPS, w->end - 1);
}

DEVICE u32 row_has(const struct row_walk *w, u32 k)
{
    return w->at + k * LANE_GROUPS < w->end;
}

DEVICE void row_restart(struct row_walk *w)
{
    w->element = w->column = w->end = w->stored = 0;
}

/* Goes to the next range that has columns; 0 where there is none. */
DEVICE u32 row_range(struct row_walk *w)
{
    const struct abi_piece *p = w->work->plan->pieces + w->work->item->piece;
    const u32 count = w->work->item->row0 < w->work->length ? p->count : 0;
    NO_UNROLL
    while (w->element < count) {
        const struct abi_range r = w->work->plan->ranges[p->first + w->element++];
        const u32 end = smaller(r.end, column_length(w->work));
        if (r.begin >= end)
            continue;
        w->column = r.begin;
        w->end = end;
        w->place = w->stored - r.begin;
        w->stored += end - r.begin;
        return 1;
    }
    return 0;
}

/* Goes to the next step; 0 at the end, where the step remains. Within a range it reads no table. */
DEVICE u32 row_step(struct row_walk *w)
{
    if (w->column >= w->end && !row_range(w))
        return 0;
    w->at = w->column + w->group;
    w->column += COLUMNS_AT_ONCE * LANE_GROUPS;
    return 1;
}

DEVICE void row_start(struct row_walk *w, const struct abi_args *a,
                      const struct work_item *work, const struct abi_tensor *first,
                      const struct abi_tensor *second)
{
    w->a = a;
    w->work = work;
    w->group = one_value(lane_group());
    w->first = lane_view(first, work);
    w->second = lane_view(second, work);
    row_restart(w);
}

/* Parts of the columns of a step, of both operands. */
struct columns {
    struct u32x4 first[COLUMNS_AT_ONCE], second[COLUMNS_AT_ONCE];
};

DEVICE void columns_load_first(struct columns *c, const struct row_walk *w)
{
    UNROLL
    for (u32 k = 0; k < COLUMNS_AT_ONCE; k++)
        c->first[k] = load_part(&w->first, row_column(w, k));
}

DEVICE void columns_load_second(struct columns *c, const struct row_walk *w)
{
    UNROLL
    for (u32 k = 0; k < COLUMNS_AT_ONCE; k++)
        c->second[k] = load_part(&w->second, row_column(w, k));
}

/* Goes to the first step and loads its columns; 0 where there is none. */
DEVICE u32 columns_start(struct columns *c, struct row_walk *w)
{
    if (!row_step(w))
        return 0;
    columns_load_first(c, w);
    columns_load_second(c, w);
    return 1;
}

/* X of column k. */
DEVICE float row_bias(const struct row_walk *w, u32 k)
{
    u32 row = w->work->item->row0, column = row_column(w, k);
    u64 at = w->rows_are_keys ? bias_at(w->a, w->work->h, column, row)
                              : bias_at(w->a, w->work->h, row, column);
    return w->a->bias[at];
}

/* True if dropout keeps column k's entry. */
DEVICE u32 row_draw(const struct row_walk *w, u32 k)
{
    u32 row = w->work->item->row0, column = row_column(w, k);
    u32 i = w->rows_are_keys ? column : row, j = w->rows_are_keys ? row : column;
    if (!DROPOUT || !w->a->keep_below)
        return 1;
    return is_kept(
        w->a, dropout_draw(w->a->seed, dropout_sample(w->a, w->work->b), w->work->h, i, j));
}

/* Draws of all columns of the step, a bit for each. A loop, because the draw is much code. */
DEVICE u32 row_draws(const struct row_walk *w)
{
    u32 kept = 0;
    NO_UNROLL
    for (u32 k = 0; k < COLUMNS_AT_ONCE; k++)
        kept |= row_draw(w, k) << k;
    return kept;
}

/* The factor of column k's entry by dropout and bias; 0 where dropped. */
DEVICE float row_factor(const struct row_walk *w, u32 kept, u32 k)
{
    float scale = DROPOUT ? w->a->keep_scale : 1;
    return kept ? scale * (SCALE_PROBS ? row_bias(w, k) : 1) : 0;
}

#endif
