/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout of a lane's entries, in the places of a fragment: bit 4 f + e for entry e of columns 8 f + 2 t, 8 f + 2 t + 1 of rows
   g and g + 8. Where rows and columns are aligned to 16, one Philox call serves eight entries of a lane if its rows are
   queries, two calls if they are keys. */
#ifndef MASKC_CUDA_COMMON_DROPOUT_H
#define MASKC_CUDA_COMMON_DROPOUT_H
#include "cuda/common/numbers.h"
#include "philox.h"

/* Sample and head of the draws. */
struct draws {
    const struct abi_args *a;
    u32 sample, h;
};

DEVICE u32 is_kept(const struct abi_args *a, u32 draw)
{
    return draw >= a->keep_below;
}

/* The two draws of a word to places x and x + step. */
DEVICE u32 kept_halves(const struct abi_args *a, u32 word, u32 x, u32 step)
{
    return is_kept(a, word & 0xffff) << x | is_kept(a, word >> 16) << (x + step);
}

/* 16 columns from `column` on (a multiple of 16): eight bits. Rows are queries: words are columns 2t, 2t + 8, 2t + 1,
   2t + 9, their halves rows g and g + 8. */
DEVICE u32 kept_of_queries(struct draws d, u32 row, u32 column)
{
    struct philox r =
        philox_4x32(dropout_counter(d.sample, d.h, row, column + 2 * quad_lane()), d.a->seed);
    return kept_halves(d.a, r.x, 0, 2) | kept_halves(d.a, r.z, 1, 2) |
           kept_halves(d.a, r.y, 4, 2) | kept_halves(d.a, r.w, 5, 2);
}

/* Rows are keys: a call for each of columns 2t and 2t + 1; its halves are columns, 8 apart. */
DEVICE u32 kept_of_keys(struct draws d, u32 row, u32 column)
{
    u32 kept = 0, word = dropout_word(row);
    NO_UNROLL
    for (u32 k = 0; k < 2; k++) {
        u32 query = column + 2 * quad_lane() + k;
        struct philox r = philox_4x32(dropout_counter(d.sample, d.h, query, row), d.a->seed);
        kept |= kept_halves(d.a, philox_word(r, word), k, 4);
        kept |= kept_halves(d.a, philox_word(r, word + 1), k + 2, 4);
    }
    return kept;
}

/* True if dropout keeps the entry (i, j). */
DEVICE u32 entry_kept(struct draws d, u32 i, u32 j)
{
    return is_kept(d.a, dropout_draw(d.a->seed, d.sample, d.h, i, j));
}

#endif
