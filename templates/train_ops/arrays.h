/* SPDX-License-Identifier: Apache-2.0 */
/* The flat arrays of a run, f32: sums, the optimiser, and copies of weights for the products. */
#ifndef MASKC_TRAIN_OPS_ARRAYS_H
#define MASKC_TRAIN_OPS_ARRAYS_H
#include "train_ops/elements.h"

ENTRY_OF(train_reduce, TRAIN_THREADS, 1)(ARGS a)
{
    const u64 parts = (a.count + TRAIN_PART - 1) / TRAIN_PART;
    NO_UNROLL
    for (u64 p = BLOCK; p < parts; p += BLOCKS) {
        const u64 first = p * TRAIN_PART,
                  end = a.count - first < TRAIN_PART ? a.count : first + TRAIN_PART;
        float sum = 0;
        NO_UNROLL
        for (u64 k = first + THREAD; k < end; k += TRAIN_THREADS) {
            const float x = ((const float *)a.x)[k];
            sum += x * (a.mode ? 0 : x);
        }
        sum = block_sum(sum);
        if (THREAD == 0)
            a.part[p] = sum;
    }
}

ENTRY_OF(train_add, TRAIN_THREADS, 1)(ARGS a)
{
    float *from = (float *)a.x, *to = (float *)a.y;
    NO_UNROLL
    EACH_ELEMENT(k, a.count)
    {
        to[k] += from[k];
        if (!a.adds)
            from[k] = 0;
    }
}

/* ---- the optimiser ---- */

DEVICE float root_of(float x)
{
    return x == 0 ? 0 : x * rsqrt_of(x);
}

/* u of struct update */
DEVICE float update_of(const struct train_args *a, float decay, u64 k)
{
    return a->first_moment[k] * a->first_scale /
               (root_of(a->second_moment[k] * a->second_scale) + a->eps) +
           decay * a->value[k];
}

DEVICE void move_moments(const struct train_args *a, u64 k)
{
    const float g = a->gradient[k] * a->gradient_scale;
    a->first_moment[k] = a->beta1 * a->first_moment[k] + a->rest1 * g;
    a->second_moment[k] = a->beta2 * a->second_moment[k] + a->rest2 * g * g;
}

ENTRY_OF(train_update, TRAIN_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    for (u32 p = BLOCK; p < a.rows; p += BLOCKS) {
        const struct train_block b = a.block[p];
        float of_value = 0, of_update = 0;
        NO_UNROLL
        for (u64 k = b.first + THREAD; k < b.first + b.count; k += TRAIN_THREADS) {
            if (a.mode & TRAIN_MOVE_MOMENTS)
                move_moments(&a, k);
            const float value = a.value[k], u = update_of(&a, b.decay, k);
            of_value += value * value;
            of_update += u * u;
            if (a.mode & TRAIN_MOVE_VALUES)
                a.value[k] = value - a.rate * b.scale * u;
        }
        if (!(a.mode & TRAIN_MEASURE))
            continue;
        of_value = block_sum(of_value);
        of_update = block_sum(of_update);
        if (THREAD == 0) {
            a.part[2 * (u64)p] = of_value;
            a.part[2 * (u64)p + 1] = of_update;
        }
    }
}

/* ---- weights ---- */

/* A tile at (o, i): read along the side that is contiguous in x, written along rows of y. */
DEVICE void pack_tile(const struct train_pack *a, u32 o, u32 i)
{
    const u32 lane = THREAD % TRAIN_TILE, by_row = a->column == 1;
    float *tile = SHARED();
    NO_UNROLL
    for (u32 k = THREAD / TRAIN_TILE; k < TRAIN_TILE; k += TRAIN_THREADS / TRAIN_TILE) {
        const u32 down = by_row ? k : lane, across = by_row ? lane : k;
        if (o + down < a->rows && i + across < a->columns)
            shared_put(tile + down * (TRAIN_TILE + 1) + across,
                       a->x[(o + down) * a->row + (i + across) * a->column]);
    }
    SYNC();
    NO_UNROLL
    for (u32 k = THREAD / TRAIN_TILE; k < TRAIN_TILE; k += TRAIN_THREADS / TRAIN_TILE)
        if (o + k < a->rows && i + lane < a->columns)
            store1(a->y, (u64)(o + k) * a->columns + i + lane, a->wide_y,
                   shared_get(tile + k * (TRAIN_TILE + 1) + lane));
    SYNC();
}

/* Places in `pack` are constants: arguments that are indexed are copied to local memory. */
ENTRY_OF(train_pack, TRAIN_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    for (u32 t = BLOCK; t < a.count; t += BLOCKS) {
        struct train_pack own = a.pack[0];
        u32 first = 0, next = a.pack[0].tiles;
        UNROLL
        for (u32 s = 1; s < TRAIN_PACKS; s++) {
            if (s < a.packs && t >= next) {
                own = a.pack[s];
                first = next;
                next += a.pack[s].tiles;
            }
        }
        const u32 across = (own.columns + TRAIN_TILE - 1) / TRAIN_TILE, tile = t - first;
        pack_tile(&own, tile / across * TRAIN_TILE, tile % across * TRAIN_TILE);
    }
}

#endif
