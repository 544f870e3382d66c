/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the sums of a changed file right again, so that what is read behind them is asked too. */
#pragma once
#include "model/data/shard.h"
#include <string.h>
#include <xxhash.h>

static inline struct shard_sum shard_sum_of(const void *bytes, size_t size)
{
    XXH128_hash_t h = XXH3_128bits(bytes, size);
    return (struct shard_sum){h.low64, h.high64};
}

/* `size` is at least that of a header. */
static inline void shard_sign(uint8_t *bytes, size_t size)
{
    struct shard_header h;
    memcpy(&h, bytes, sizeof h);
    h.body_sum = shard_sum_of(bytes + sizeof h, size - sizeof h);
    h.header_sum = (struct shard_sum){0};
    h.header_sum = shard_sum_of(&h, sizeof h);
    memcpy(bytes, &h, sizeof h);
}
