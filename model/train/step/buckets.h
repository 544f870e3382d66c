/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient in buckets, from the end of the flat buffer to its beginning. The way back of a step completes them in this
   order: heads and the last layer first, the embeddings last. Ranks sum a bucket while the way back goes on. */
#pragma once
#include "model/gradients/state.h"

struct buckets {
    uint64_t *first; /* [count]: where each begins, descending; the last one is 0 */
    uint32_t count, complete;
    uint64_t all; /* elements of the flat buffer */
};

/* Whole layers, of at least `least` elements; the embeddings belong to the last bucket. 0: of the usual size, which depends
   on the model only. */
void buckets_begin(struct buckets *b, const struct train_state *s, uint64_t least);
void buckets_finish(struct buckets *b); /* a zeroed one is fine */
/* False: no bucket after b->complete lies in the elements from `first` on. Else that bucket, which counts as complete. */
bool buckets_next(struct buckets *b, uint64_t first, struct span *ret);
