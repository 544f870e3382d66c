/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of the encoder's row kernels. A warp takes every ROWS_OF_BLOCK * BLOCKS-th row; rows_finish takes
   single elements, as its rows may have any length. */
#include "encoder_ops/activation.h"
#include "encoder_ops/norm.h"

#define EACH_ROW(r) \
    for (u32 r = BLOCK * ROWS_OF_BLOCK + THREAD / 32; r < a.rows; r += BLOCKS * ROWS_OF_BLOCK)

ENTRY_OF(rows_embed, ROWS_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    EACH_ROW(r)
    {
        struct row sum;
        row_clear(&sum);
        row_add(&sum, a.words, (u64)a.number[r] * HIDDEN, WIDE);
        if (a.positions)
            row_add(&sum, a.positions, (u64)a.position[r] * HIDDEN, 1);
        if (a.types)
            row_add(&sum, a.types, (u64)a.type[r] * HIDDEN, 1);
        layer_norm(&a, &sum, (u64)r * HIDDEN);
    }
}

/* x + bias + residual of row r, of what there is. */
DEVICE void row_sum(const struct rows_args *a, u32 r, struct row *sum)
{
    row_clear(sum);
    if (a->x)
        row_add(sum, a->x, (u64)r * HIDDEN, 1);
    if (a->bias)
        row_add(sum, a->bias, 0, 1);
    if (a->residual)
        row_add(sum, a->residual, (u64)r * HIDDEN, WIDE);
}

ENTRY_OF(rows_norm, ROWS_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    EACH_ROW(r)
    {
        struct row sum;
        row_sum(&a, r, &sum);
        layer_norm(&a, &sum, (u64)r * HIDDEN);
    }
}

ENTRY_OF(rows_add, ROWS_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    EACH_ROW(r)
    {
        struct row sum;
        row_sum(&a, r, &sum);
        UNROLL
        for (u32 s = 0; s < STEPS; s++)
            if (column_of(s) < HIDDEN)
                store_chunk(a.y, (u64)r * HIDDEN + column_of(s), WIDE, &sum.step[s]);
    }
}

DEVICE void finish1(const struct rows_args *a, u64 at, u32 column)
{
    float x = load1(a->x, at, a->wide);
    if (a->bias)
        x += a->bias[column];
    store1(a->y, at, a->wide, activation_of(a->after, x));
}

/* Four neighbours; columns are a multiple of four. */
DEVICE void finish4(const struct rows_args *a, u64 at, u32 column)
{
    struct f4 x = load4(a->x, at, a->wide);
    if (a->bias) {
        struct f4 bias = load4(a->bias, column, 1);
        x.x += bias.x;
        x.y += bias.y;
        x.z += bias.z;
        x.w += bias.w;
    }
    x.x = activation_of(a->after, x.x);
    x.y = activation_of(a->after, x.y);
    x.z = activation_of(a->after, x.z);
    x.w = activation_of(a->after, x.w);
    store4(a->y, at, a->wide, x);
}

ENTRY_OF(rows_finish, ROWS_THREADS, 1)(ARGS a)
{
    const u32 step = a.columns % 4 ? 1 : 4, across = a.columns / step;
    const u64 all = (u64)a.rows * across;
    NO_UNROLL
    for (u64 k = (u64)BLOCK * ROWS_THREADS + THREAD; k < all; k += (u64)BLOCKS * ROWS_THREADS) {
        if (step == 4)
            finish4(&a, 4 * k, 4 * (u32)(k % across));
        else
            finish1(&a, k, (u32)(k % across));
    }
}

ENTRY_OF(rows_glu, ROWS_THREADS, 1)(ARGS a)
{
    const u64 all = (u64)a.rows * a.columns;
    NO_UNROLL
    for (u64 k = (u64)BLOCK * ROWS_THREADS + THREAD; k < all; k += (u64)BLOCKS * ROWS_THREADS) {
        const u64 from = k / a.columns * 2 * a.columns + k % a.columns;
        const float x = activation_of(a.after, load1(a.x, from, WIDE));
        store1(a.y, k, WIDE, x * load1(a.x, from + a.columns, WIDE));
    }
}

ENTRY_OF(rows_rotate, ROWS_THREADS, 1)(ARGS a)
{
    const u32 across = a.heads * a.half;
    const u64 all = (u64)a.rows * across;
    NO_UNROLL
    for (u64 k = (u64)BLOCK * ROWS_THREADS + THREAD; k < all; k += (u64)BLOCKS * ROWS_THREADS) {
        const u32 r = (u32)(k / across), column = (u32)(k % across) % a.half;
        const u64 angle = (u64)a.position[r] * a.half + column,
                  at = (u64)r * a.columns + (u32)(k % across) / a.half * a.head + column;
        const float x = load1(a.y, at, WIDE), y = load1(a.y, at + a.half, WIDE),
                    cosine = a.gain[angle], sine = a.shift[angle];
        store1(a.y, at, WIDE, x * cosine - y * sine);
        store1(a.y, at + a.half, WIDE, y * cosine + x * sine);
    }
}

ENTRY_OF(rows_gather, ROWS_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    EACH_ROW(r)
    {
        const u64 from = (u64)a.number[r] * HIDDEN, to = (u64)r * HIDDEN;
        UNROLL
        for (u32 s = 0; s < STEPS; s++) {
            if (column_of(s) >= HIDDEN)
                continue;
            struct chunk x = load_chunk(a.x, from + column_of(s), WIDE);
            store_chunk(a.y, to + column_of(s), WIDE, &x);
        }
    }
}

ENTRY_OF(rows_mean, ROWS_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    EACH_ROW(r)
    {
        const u32 begin = (u32)a.offsets[r], end = (u32)a.offsets[r + 1];
        struct row sum;
        row_clear(&sum);
        NO_UNROLL
        for (u32 from = begin; from < end; from++)
            row_add(&sum, a.x, (u64)from * HIDDEN, WIDE);
        UNROLL
        for (u32 s = 0; s < STEPS; s++) {
            if (column_of(s) >= HIDDEN)
                continue;
            UNROLL
            for (u32 k = 0; k < WIDTH; k++)
                sum.step[s].v[k] /= (float)(end - begin);
            store_chunk(a.y, (u64)r * HIDDEN + column_of(s), 1, &sum.step[s]);
        }
    }
}
