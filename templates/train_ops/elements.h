/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of any number of columns, by elements: sums of columns, activations on the way back. */
#ifndef MASKC_TRAIN_OPS_ELEMENTS_H
#define MASKC_TRAIN_OPS_ELEMENTS_H
#include "train_ops/block.h"

#define EACH_ELEMENT(k, all)                                     \
    for (u64 k = (u64)BLOCK * TRAIN_THREADS + THREAD; k < (all); \
         k += (u64)BLOCKS * TRAIN_THREADS)

/* ---- sums of columns ---- */

/* A thread takes a column of a chunk of rows. */
ENTRY_OF(train_columns, TRAIN_THREADS, 1)(ARGS a)
{
    const u32 tiles = (a.columns + TRAIN_THREADS - 1) / TRAIN_THREADS,
              chunks = (a.rows + TRAIN_CHUNK - 1) / TRAIN_CHUNK;
    NO_UNROLL
    for (u64 t = BLOCK; t < (u64)chunks * tiles; t += BLOCKS) {
        const u32 chunk = (u32)(t / tiles), column = (u32)(t % tiles) * TRAIN_THREADS + THREAD,
                  first = chunk * TRAIN_CHUNK,
                  end = a.rows - first < TRAIN_CHUNK ? a.rows : first + TRAIN_CHUNK;
        float sum = 0, with_z = 0;
        if (column >= a.columns)
            continue;
        NO_UNROLL
        for (u32 r = first; r < end; r++) {
            const u64 at = (u64)r * a.columns + column;
            const float x = load1(a.x, at, a.wide);
            sum += x;
            if (a.z)
                with_z += x * load1(a.z, at, a.wide_z);
        }
        a.part[(u64)chunk * a.columns + column] = sum;
        if (a.z)
            a.part[(u64)(chunks + chunk) * a.columns + column] = with_z;
    }
}

DEVICE void add_parts(const struct train_sum *s, u32 k)
{
    u32 to = k;
    float sum = 0;
    if (s->padded && k % s->padded >= s->head)
        return;
    if (s->padded)
        to = k / s->padded * s->head + k % s->padded;
    NO_UNROLL
    for (u32 c = 0; c < s->rows; c++)
        sum += s->part[(u64)c * s->stride + k];
    s->y[to] += sum;
}

/* Places in `sum` are constants: arguments that are indexed are copied to local memory. */
ENTRY_OF(train_add_parts, TRAIN_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    EACH_ELEMENT(k, a.columns)
    {
        struct train_sum own = a.sum[0];
        u32 first = 0, next = a.sum[0].columns;
        UNROLL
        for (u32 s = 1; s < TRAIN_SUMS; s++) {
            if (s < a.sums && k >= next) {
                own = a.sum[s];
                first = next;
                next += a.sum[s].columns;
            }
        }
        add_parts(&own, (u32)k - first);
    }
}

/* ---- activations ---- */

DEVICE float sigmoid_of(float x)
{
    return 1 / (1 + exp_of(-x));
}

DEVICE float derivative_of(u32 after, float x)
{
    const float bounded = x > 20 ? 20 : x < -20 ? -20 : x;
    float s, t;
    switch (after) {
    case ROWS_AFTER_GELU:
        return 0.5f * (1 + erf_of(0.707106781f * x)) +
               bounded * 0.398942280f * exp_of(-0.5f * bounded * bounded);
    case ROWS_AFTER_GELU_TANH:
        t = bounded > 10 ? 10 : bounded < -10 ? -10 : bounded;
        s = sigmoid_of(1.59576912f * t * (1 + 0.044715f * t * t));
        return s + t * s * (1 - s) * 1.59576912f * (1 + 0.134145f * t * t);
    case ROWS_AFTER_RELU:
        return x > 0 ? 1 : 0;
    case ROWS_AFTER_SILU:
        s = sigmoid_of(x);
        return s + x * s * (1 - s);
    case ROWS_AFTER_TANH:
        t = tanh_of(x);
        return (1 - t) * (1 + t);
    default:
        return 1;
    }
}

ENTRY_OF(train_activate_back, TRAIN_THREADS, 1)(ARGS a)
{
    const u64 all = (u64)a.rows * a.columns;
    NO_UNROLL
    EACH_ELEMENT(k, all)
    store1(a.y, k, WIDE, a.d[k] * derivative_of(a.after, load1(a.x, k, a.wide)));
}

ENTRY_OF(train_glu_back, TRAIN_THREADS, 1)(ARGS a)
{
    const u64 all = (u64)a.rows * a.columns;
    NO_UNROLL
    EACH_ELEMENT(k, all)
    {
        const u64 first = k / a.columns * 2 * a.columns + k % a.columns,
                  second = first + a.columns;
        const float x = load1(a.x, first, WIDE), d = a.d[k];
        store1(a.y, first, WIDE, d * load1(a.x, second, WIDE) * derivative_of(a.after, x));
        store1(a.y, second, WIDE, d * activation_of(a.after, x));
    }
}

#endif
