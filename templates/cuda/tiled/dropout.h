/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: which of the lane's entries of a column tile are kept, a bit for each, 4 f + x for place x of
   fragment f. Where rows and columns are aligned one Philox call serves eight entries of a lane if its rows are
   queries, two calls if they are keys. Other entries take a call each. */
#ifndef MASKC_CUDA_TILED_DROPOUT_H
#define MASKC_CUDA_TILED_DROPOUT_H
#include "cuda/tiled/bias_scores.h"
#define PHILOX_UNROLL UNROLL_BY(PHILOX_ROUNDS_UNROLLED)
#include "philox.h"

struct drop {
    const struct abi_args *a;
    const struct work_item *work;
    u32 rows_are_keys;
};

DEVICE u32 sample_of(const struct drop *d)
{
    return dropout_sample(d->a, d->work->b);
}

DEVICE u32 is_kept(const struct abi_args *a, u32 draw)
{
    return draw >= a->keep_below;
}

/* The two draws of a word to places x and x + step. */
DEVICE u32 kept_halves(const struct abi_args *a, u32 word, u32 x, u32 step)
{
    return is_kept(a, word & 0xffff) << x | is_kept(a, word >> 16) << (x + step);
}

/* 16 columns from `column` on (a multiple of 16): eight bits. Rows are queries: words are columns
   2t, 2t + 8, 2t + 1, 2t + 9, their halves rows g and g + 8. */
DEVICE u32 kept_of_queries(const struct drop *d, u32 row, u32 column)
{
    struct philox r = philox_4x32(
        dropout_counter(sample_of(d), d->work->h, row, column + lane_pair()), d->a->seed);
    return kept_halves(d->a, r.x, 0, 2) | kept_halves(d->a, r.z, 1, 2) |
           kept_halves(d->a, r.y, 4, 2) | kept_halves(d->a, r.w, 5, 2);
}

/* Rows are keys: a call for each of columns 2t and 2t + 1; its halves are columns, 8 apart. */
DEVICE u32 kept_of_keys(const struct drop *d, u32 row, u32 column)
{
    u32 kept = 0, word = dropout_word(row);
    NO_UNROLL
    for (u32 k = 0; k < 2; k++) {
        u32 query = column + lane_pair() + k;
        struct philox r =
            philox_4x32(dropout_counter(sample_of(d), d->work->h, query, row), d->a->seed);
        kept |= kept_halves(d->a, philox_word(r, word), k, 4);
        kept |= kept_halves(d->a, philox_word(r, word + 1), k + 2, 4);
    }
    return kept;
}

/* Any rows, any columns. */
DEVICE u32 kept_elsewhere(const struct drop *d, const struct column_tile *ct)
{
    u32 kept = 0;
    NO_UNROLL
    for (u32 k = 0; k < 4 * FRAGMENTS; k++) {
        u32 slot = 8 * (k / 4) + lane_pair() + (k & 1);
        if (slot >= end_slot(ct))
            continue;
        u32 row = row_position(d->work, block_row(k >> 1 & 1));
        u32 column = slot_column(ct, d->work, slot);
        u32 i = d->rows_are_keys ? column : row, j = d->rows_are_keys ? row : column;
        kept |= is_kept(d->a, dropout_draw(d->a->seed, sample_of(d), d->work->h, i, j)) << k;
    }
    return kept;
}

DEVICE u32 dropout_kept(const struct drop *d, const struct column_tile *ct, u32 live)
{
    u32 kept = 0, row = row_position(d->work, block_row(0));
    if (!DROPOUT || !d->a->keep_below)
        return 0xffff;
    if (is_gathered(ct) || d->work->item->step != 1)
        return kept_elsewhere(d, ct);
    NO_UNROLL
    for (u32 pair = 0; pair < FRAGMENTS / 2; pair++) {
        u32 column = ct->column + 16 * pair;
        if (is_pair_live(live, pair))
            kept |= (d->rows_are_keys ? kept_of_keys(d, row, column)
                                      : kept_of_queries(d, row, column))
                    << (8 * pair);
    }
    return kept;
}

/* Multiplies by 0 or keep_scale. */
DEVICE void dropout(struct scores *s, const struct abi_args *a, u32 kept)
{
    if (!DROPOUT)
        return;
    UNROLL
    for (u32 k = 0; k < 4 * FRAGMENTS; k++) {
        float *x = &s->at[k / 4].x[k % 4];
        *x = kept >> k & 1 ? *x * a->keep_scale : 0;
    }
}

#endif
