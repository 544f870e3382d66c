/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for the weights of a whole model, or for what panels work in, in blocks on large pages: a small
   batch reads all weights once, a large one walks through rows, and with pages of 4 KiB both wait for
   addresses as well. */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct pool {
    void **block;
    uint32_t blocks, room;
    size_t used, bytes; /* of the last block */
};

/* So many bytes, 64-byte aligned, zeroed; they live as long as the pool. */
void *pool_take(struct pool *p, size_t bytes);
void pool_finish(struct pool *p); /* a zeroed one is fine */
