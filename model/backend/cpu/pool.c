/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/cpu/pool.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

enum { LINE = 64, LARGEST = 32 << 20 };

/* Blocks double, so that a small model takes little. */
static void add_block(struct pool *p, size_t bytes)
{
    size_t next = p->bytes < LARGEST / 2 ? 2 * p->bytes : LARGEST;
    p->bytes = bytes > next ? bytes : next;
    *MEMORY_PUSH(p->block, p->blocks, p->capacity) = memory_large(&p->bytes);
    p->used = 0;
}

void *pool_take(struct pool *p, size_t bytes)
{
    bytes = (bytes + LINE - 1) / LINE * LINE; /* weights were in memory: no overflow */
    if (!p->blocks || bytes > p->bytes - p->used)
        add_block(p, bytes);
    uint8_t *ret = (uint8_t *)p->block[p->blocks - 1] + p->used;
    p->used += bytes;
    p->taken += bytes;
    return memset(ret, 0, bytes);
}

void pool_finish(struct pool *p)
{
    for (uint32_t k = 0; k < p->blocks; k++)
        free(p->block[k]);
    free(p->block);
    *p = (struct pool){0};
}
