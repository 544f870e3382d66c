/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: the factor of each entry, 0 or keep_scale. One Philox call serves four of a thread's entries where
   its row is a query, two where it is a key. Entries on lines and of gathered columns take a call each. */
#ifndef MASKC_CUDA_SIMT_DROPOUT_H
#define MASKC_CUDA_SIMT_DROPOUT_H
#include "cuda/simt/bias_slots.h"
#include "cuda/simt/products.h"
#define PHILOX_UNROLL UNROLL_BY(PHILOX_ROUNDS_UNROLLED)
#include "philox.h"

DEVICE u32 is_kept(const struct abi_args *a, u32 draw)
{
    return draw >= a->keep_below;
}

/* The next three return bit k: the entry at place k is kept. */
DEVICE u32 kept_of_query_row(const struct abi_args *a, const struct work_item *work,
                             const struct column_tile *ct)
{
    u32 kept = 0, i = work->row, sample = dropout_sample(a, work->b);
    NO_UNROLL
    for (u32 k = 0; k < SLOTS; k += 4) {
        u32 key = (u32)ct->column + slot_of(k, quad_lane());
        struct philox r = philox_4x32(dropout_counter(sample, work->h, i, key), a->seed);
        kept |= is_kept(a, dropout_half(r.x, i)) << k;
        kept |= is_kept(a, dropout_half(r.z, i)) << (k + 1);
        kept |= is_kept(a, dropout_half(r.y, i)) << (k + 2);
        kept |= is_kept(a, dropout_half(r.w, i)) << (k + 3);
    }
    return kept;
}

DEVICE u32 kept_of_key_row(const struct abi_args *a, const struct work_item *work,
                           const struct column_tile *ct)
{
    u32 kept = 0, word = dropout_word(work->row), sample = dropout_sample(a, work->b);
    NO_UNROLL
    for (u32 call = 0; call < SLOTS / 2; call++) {
        u32 k = (call & 1) + 4 * (call >> 1), i = (u32)ct->column + slot_of(k, quad_lane());
        struct philox r = philox_4x32(dropout_counter(sample, work->h, i, work->row), a->seed);
        u32 draws = philox_word(r, word);
        kept |= is_kept(a, draws & 0xffff) << k;
        kept |= is_kept(a, draws >> 16) << (k + 2);
    }
    return kept;
}

DEVICE u32 kept_on_lines(const struct abi_args *a, const struct work_item *work,
                         const struct column_tile *ct, u32 rows_are_keys)
{
    u32 kept = 0, sample = dropout_sample(a, work->b);
    NO_UNROLL
    for (u32 k = 0; k < SLOTS; k++) {
        if (!sees(ct, k))
            continue;
        u32 column = slot_column(ct, slot_of(k, quad_lane()));
        u32 i = rows_are_keys ? column : work->row, key = rows_are_keys ? work->row : column;
        kept |= is_kept(a, dropout_draw(a->seed, sample, work->h, i, key)) << k;
    }
    return kept;
}

/* Which of the thread's entries are kept. */
DEVICE u32 dropout_kept(const struct abi_args *a, const struct work_item *work,
                        const struct column_tile *ct, u32 rows_are_keys)
{
    if (!DROPOUT || !a->keep_below)
        return 0xff;
    if (!ct->is_tile || ct->columns)
        return kept_on_lines(a, work, ct, rows_are_keys);
    return rows_are_keys ? kept_of_key_row(a, work, ct) : kept_of_query_row(a, work, ct);
}

/* 0 or keep_scale. */
DEVICE float dropout_factor(const struct abi_args *a, u32 kept)
{
    if (!DROPOUT || !a->keep_below)
        return 1;
    return kept ? a->keep_scale : 0;
}

/* Multiplies each entry by its factor. */
DEVICE void dropout(struct slots *x, const struct abi_args *a, u32 kept)
{
    if (DROPOUT && a->keep_below) {
        UNROLL
        for (u32 k = 0; k < SLOTS; k++)
            x->at[k] = kept >> k & 1 ? x->at[k] * a->keep_scale : 0;
    }
}

#endif
