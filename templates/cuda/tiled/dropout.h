/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: which of the lane's entries of a column tile are kept, a bit for each, 4 f + x for place x of
   fragment f. Entries that are not aligned take a Philox call each (common/dropout.h). */
#ifndef MASKC_CUDA_TILED_DROPOUT_H
#define MASKC_CUDA_TILED_DROPOUT_H
#include "cuda/tiled/bias_scores.h"
#define PHILOX_UNROLL UNROLL_BY(PHILOX_ROUNDS_UNROLLED)
#include "cuda/common/dropout.h"

struct drop {
    const struct abi_args *a;
    const struct work_item *work;
    u32 rows_are_keys;
};

DEVICE struct draws draws_of(const struct drop *d)
{
    struct draws ret = {d->a, dropout_sample(d->a, d->work->b), d->work->h};
    return ret;
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
        kept |= entry_kept(draws_of(d), i, j) << k;
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
        if (has_pair(live, pair))
            kept |= (d->rows_are_keys ? kept_of_keys(draws_of(d), row, column)
                                      : kept_of_queries(draws_of(d), row, column))
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
