/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is given back all at once, in blocks on large pages: for a model's weights, and for what
   panels work in. A small batch reads all weights once and a large one walks through rows; with pages of
   4 KiB both wait for address translation as well. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool {
    void **block;
    uint32_t blocks, capacity;
    size_t used, bytes; /* of the last block */
    uint64_t left;      /* resident bytes of the blocks before it */
    bool counts;        /* alone: there is no memory, and pool_take gives null */
};

/* So many bytes, 64-byte aligned, zeroed; they live as long as the pool. */
void *pool_take(struct pool *p, size_t bytes);
/* Bytes that are resident: what was taken, in pages of 2 MiB. */
uint64_t pool_held(const struct pool *p);
void pool_finish(struct pool *p); /* a zeroed one is fine */
