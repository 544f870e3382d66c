/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of HIDDEN columns, a warp each: embeddings, LayerNorm with a tape and its way back, dropout, sums of rows. */
#ifndef MASKC_TRAIN_OPS_ROWS_H
#define MASKC_TRAIN_OPS_ROWS_H
#include "train_ops/block.h"
/* after what says DEVICE */
#include "philox.h"

#define EACH_ROW(r)                                                     \
    for (u32 r = BLOCK * TRAIN_ROWS_OF_BLOCK + THREAD / 32; r < a.rows; \
         r += BLOCKS * TRAIN_ROWS_OF_BLOCK)

/* ---- dropout ---- */

/* Applies dropout to the columns of row r from `column` on. Column c uses word c % 4 of its Philox
   call, the low half if c % 8 < 4, else the high half. */
DEVICE void drop_chunk(const struct train_args *a, u32 r, u32 column, struct chunk *x)
{
    struct philox c;
    c.x = column / 8;
    c.y = a->place[2 * (u64)r + 1];
    c.z = a->place[2 * (u64)r];
    c.w = a->site;
    c = philox_4x32_short(c, a->seed);
    UNROLL
    for (u32 k = 0; k < WIDTH; k++) {
        const u32 word = philox_word(c, (column + k) % 4);
        const u32 draw = column % 8 < 4 ? word & 0xffff : word >> 16;
        x->v[k] = draw < a->keep_below ? 0 : x->v[k] * a->keep_scale;
    }
}

DEVICE void row_drop(const struct train_args *a, u32 r, struct row *x)
{
    if (!a->keep_below)
        return;
    UNROLL
    for (u32 s = 0; s < STEPS; s++)
        if (column_of(s) < HIDDEN)
            drop_chunk(a, r, column_of(s), &x->step[s]);
}

DEVICE void row_store(void *to, u64 at, u32 wide, const struct row *x)
{
    UNROLL
    for (u32 s = 0; s < STEPS; s++)
        if (column_of(s) < HIDDEN)
            store_chunk(to, at + column_of(s), wide, &x->step[s]);
}

/* ---- forward ---- */

/* x = norm(x) of row r, with its tape. */
DEVICE void row_normalise(const struct train_args *a, u32 r, u32 wide, struct row *x)
{
    const float mean = row_mean(x);
    const float inverse = rsqrt_of(row_variance(x, mean) + a->eps);
    if (THREAD % 32 == 0)
        a->inverse[r] = inverse;
    UNROLL
    for (u32 s = 0; s < STEPS; s++) {
        if (column_of(s) >= HIDDEN)
            continue;
        struct chunk gain = load_chunk(a->gain, column_of(s), 1);
        struct chunk shift = load_chunk(a->shift, column_of(s), 1);
        UNROLL
        for (u32 k = 0; k < WIDTH; k++)
            x->step[s].v[k] = (x->step[s].v[k] - mean) * inverse;
        store_chunk(a->z, (u64)r * HIDDEN + column_of(s), wide, &x->step[s]);
        UNROLL
        for (u32 k = 0; k < WIDTH; k++)
            x->step[s].v[k] = x->step[s].v[k] * gain.v[k] + shift.v[k];
    }
}

ENTRY_OF(train_embed, TRAIN_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    EACH_ROW(r)
    {
        struct row x;
        row_clear(&x);
        row_add(&x, a.words, (u64)a.number[r] * HIDDEN, 1);
        if (a.positions)
            row_add(&x, a.positions, (u64)a.position[r] * HIDDEN, 1);
        if (a.types)
            row_add(&x, a.types, (u64)a.type[r] * HIDDEN, 1);
        row_normalise(&a, r, 1, &x);
        row_drop(&a, r, &x);
        row_store(a.y, (u64)r * HIDDEN, WIDE, &x);
    }
}

ENTRY_OF(train_norm, TRAIN_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    EACH_ROW(r)
    {
        struct row x;
        row_clear(&x);
        if (a.x)
            row_add(&x, a.x, (u64)r * HIDDEN, 1);
        if (a.bias)
            row_add(&x, a.bias, 0, 1);
        row_drop(&a, r, &x);
        if (a.residual)
            row_add(&x, a.residual, (u64)r * HIDDEN, WIDE);
        if (a.gain)
            row_normalise(&a, r, WIDE, &x);
        row_store(a.y, (u64)r * HIDDEN, WIDE, &x);
    }
}

/* ---- backward ---- */

/* Means over the columns of a row that its gradient needs: of g = d gain, and of g z. */
struct means {
    float g, gz;
};

/* d becomes g. z is read twice rather than kept: rows are long, registers few. */
DEVICE struct means row_means(const struct train_args *a, u32 r, struct row *d)
{
    struct means sum;
    sum.g = 0;
    sum.gz = 0;
    UNROLL
    for (u32 s = 0; s < STEPS; s++) {
        if (column_of(s) >= HIDDEN)
            continue;
        struct chunk gain = load_chunk(a->gain, column_of(s), 1);
        struct chunk z = load_chunk(a->z, (u64)r * HIDDEN + column_of(s), a->wide_z);
        UNROLL
        for (u32 k = 0; k < WIDTH; k++) {
            d->step[s].v[k] *= gain.v[k];
            sum.g += d->step[s].v[k];
            sum.gz += d->step[s].v[k] * z.v[k];
        }
    }
    sum.g = warp_sum(sum.g) / (float)HIDDEN;
    sum.gz = warp_sum(sum.gz) / (float)HIDDEN;
    return sum;
}

/* d = inverse (g - mean(g) - z mean(g z)) */
DEVICE void row_normalise_back(const struct train_args *a, u32 r, struct row *d)
{
    const struct means mean = row_means(a, r, d);
    const float inverse = a->inverse[r];
    UNROLL
    for (u32 s = 0; s < STEPS; s++) {
        if (column_of(s) >= HIDDEN)
            continue;
        struct chunk z = load_chunk(a->z, (u64)r * HIDDEN + column_of(s), a->wide_z);
        UNROLL
        for (u32 k = 0; k < WIDTH; k++)
            d->step[s].v[k] = inverse * (d->step[s].v[k] - mean.g - z.v[k] * mean.gz);
    }
}

ENTRY_OF(train_norm_back, TRAIN_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    EACH_ROW(r)
    {
        const u64 at = (u64)r * HIDDEN;
        struct row d;
        row_clear(&d);
        row_add(&d, a.d, at, 1);
        if (a.gain) {
            row_normalise_back(&a, r, &d);
            row_store(a.d, at, 1, &d);
        }
        if (a.y) {
            row_drop(&a, r, &d);
            row_store(a.y, at, a.wide_y, &d);
        }
    }
}

ENTRY_OF(train_segments, TRAIN_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    EACH_ROW(s)
    {
        if (a.target && a.target[s] == TRAIN_NOWHERE)
            continue;
        const u64 to = (u64)(a.target ? a.target[s] : s) * HIDDEN;
        const u32 first = a.begin ? a.begin[s] : s, end = a.begin ? a.begin[s + 1] : s + 1;
        struct row sum;
        row_clear(&sum);
        if (a.adds)
            row_add(&sum, a.y, to, 1);
        NO_UNROLL
        for (u32 k = first; k < end; k++)
            row_add(&sum, a.x, (u64)(a.from ? a.from[k] : k) * HIDDEN, a.wide);
        row_store(a.y, to, 1, &sum);
    }
}

/* ---- the linear to few labels ---- */

ENTRY_OF(train_labels, TRAIN_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    EACH_ROW(r)
    {
        struct row x;
        row_clear(&x);
        row_add(&x, a.x, (u64)r * HIDDEN, 1);
        NO_UNROLL
        for (u32 c = 0; c < a.columns; c++) {
            float sum = 0;
            UNROLL
            for (u32 s = 0; s < STEPS; s++) {
                if (column_of(s) >= HIDDEN)
                    continue;
                struct chunk w = load_chunk(a.words, (u64)c * HIDDEN + column_of(s), 1);
                UNROLL
                for (u32 k = 0; k < WIDTH; k++)
                    sum += x.step[s].v[k] * w.v[k];
            }
            sum = warp_sum(sum) + a.bias[c];
            if (THREAD % 32 == 0)
                ((float *)a.y)[(u64)r * a.columns + c] = sum;
        }
    }
}

ENTRY_OF(train_labels_back, TRAIN_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    EACH_ROW(r)
    {
        struct row sum;
        row_clear(&sum);
        NO_UNROLL
        for (u32 c = 0; c < a.columns; c++) {
            const float d = a.d[(u64)r * a.columns + c];
            UNROLL
            for (u32 s = 0; s < STEPS; s++) {
                if (column_of(s) >= HIDDEN)
                    continue;
                struct chunk w = load_chunk(a.words, (u64)c * HIDDEN + column_of(s), 1);
                UNROLL
                for (u32 k = 0; k < WIDTH; k++)
                    sum.step[s].v[k] += d * w.v[k];
            }
        }
        row_store(a.y, (u64)r * HIDDEN, 1, &sum);
    }
}

#endif
