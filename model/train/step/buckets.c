/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/step/buckets.h"
#include "masks/base/memory.h"
#include "model/comm/comm.h"
#include <stdlib.h>

/* A small model's buckets, all but the last, have at least this part of its gradient. */
enum { MOST_BUCKETS = 16 };

static uint64_t usual(const struct train_state *s)
{
    const uint64_t part = s->count / MOST_BUCKETS;
    return part < COMM_BUCKET ? part : COMM_BUCKET;
}

void buckets_begin(struct buckets *b, const struct train_state *s, uint64_t least)
{
    const uint32_t layers = train_state_layers(s);
    uint64_t end = s->count;
    least = least ? least : usual(s);
    *b = (struct buckets){.first = memory_new(layers + (size_t)1, sizeof *b->first),
                          .all = s->count};
    for (uint32_t k = layers; k-- > 0;) {
        const uint64_t first = train_state_final(s, k);
        if (first >= end || end - first < least)
            continue;
        b->first[b->count++] = first;
        end = first;
    }
    b->first[b->count++] = 0;
}

void buckets_finish(struct buckets *b)
{
    free(b->first);
    *b = (struct buckets){0};
}

bool buckets_next(struct buckets *b, uint64_t first, struct span *ret)
{
    if (b->complete == b->count || b->first[b->complete] < first)
        return false;
    const uint64_t end = b->complete ? b->first[b->complete - 1] : b->all;
    ret->first = b->first[b->complete++];
    ret->count = end - ret->first;
    return true;
}
