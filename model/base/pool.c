/* SPDX-License-Identifier: Apache-2.0 */
#include "model/base/pool.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, LARGEST = 32 << 20 };

/* Pages that nobody touched are not there. */
uint64_t pool_held(const struct pool *p)
{
    return p->left + memory_large_bytes(p->used);
}

/* Blocks double, so that a small model takes little. */
static void add_block(struct pool *p, size_t bytes)
{
    size_t next = p->bytes < LARGEST / 2 ? 2 * p->bytes : LARGEST;
    p->left = pool_held(p);
    p->used = 0;
    p->bytes = memory_large_bytes(bytes > next ? bytes : next);
    *MEMORY_PUSH(p->block, p->blocks, p->capacity) = p->counts ? NULL : memory_large(&p->bytes);
}

void *pool_take(struct pool *p, size_t bytes)
{
    bytes = (bytes + LINE - 1) / LINE * LINE; /* weights were in memory: no overflow */
    if (!p->blocks || bytes > p->bytes - p->used)
        add_block(p, bytes);
    uint8_t *block = p->block[p->blocks - 1], *ret = block ? block + p->used : NULL;
    p->used += bytes;
    return ret ? memset(ret, 0, bytes) : NULL;
}

void pool_finish(struct pool *p)
{
    for (uint32_t k = 0; k < p->blocks; k++)
        free(p->block[k]);
    free(p->block);
    *p = (struct pool){0};
}
