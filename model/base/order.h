/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of the data: Philox4x32-10 by masks/base/random.h, a stream for each purpose. What is drawn is
   a function of the seed and of what it is drawn for, never of threads or of what was drawn before. */
#pragma once
#include "masks/base/random.h"

enum data_stream {
    STREAM_HELD_OUT = 16, /* which documents are held out */
    STREAM_PAIRS,         /* row: the document; part: which of the duplicates */
    STREAM_ORDER,
    STREAM_MASKING, /* row: the sample; part: the epoch */
    STREAM_DROP,    /* row: layer and head; part: the repeat */
    STREAM_ALPHA,   /* first values of a learned mask; row: layer and head */
    STREAM_NOISE,   /* row and part: the step, low and high half */
};

static inline struct draws data_draws(uint64_t seed, enum data_stream stream, uint32_t row,
                                      uint32_t part)
{
    return draws_begin(seed, (enum random_stream)stream, row, part);
}

/* In [0, 1). */
static inline double draw_share(struct draws *d)
{
    return (double)(draws_next(d) >> 11) * 0x1p-53;
}

/* Place k of a permutation of 0 .. count - 1, one for each seed and epoch. No table: a Feistel network over the
   next even number of bits, walked until it is below count. */
uint32_t order_at(uint64_t seed, uint32_t epoch, uint32_t count, uint32_t k);
