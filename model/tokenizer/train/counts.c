/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/train/counts.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static uint32_t *slot_of(const struct counts *c, const char *bytes, uint32_t size)
{
    uint64_t at = XXH3_64bits(bytes, size);
    for (;; at++) {
        uint32_t *slot = &c->slot[at & (c->n_slots - 1)];
        if (!*slot)
            return slot;
        const struct counted *i = &c->item[*slot - 1];
        if (i->size == size && !memcmp(c->bytes + i->begin, bytes, size))
            return slot;
    }
}

static void grow(struct counts *c)
{
    free(c->slot);
    c->n_slots = c->n_slots ? 2 * c->n_slots : 1 << 12;
    c->slot = memory_new(c->n_slots, sizeof *c->slot);
    for (uint32_t k = 0; k < c->n_items; k++)
        *slot_of(c, c->bytes + c->item[k].begin, c->item[k].size) = k + 1;
}

uint32_t counts_add(struct counts *c, const char *bytes, uint32_t size, uint64_t count)
{
    if (2 * (uint64_t)c->n_items >= c->n_slots)
        grow(c);
    uint32_t *slot = slot_of(c, bytes, size);
    if (!*slot) {
        if (c->used + size > c->bytes_capacity) {
            c->bytes_capacity = 2 * c->bytes_capacity + size + 4096;
            c->bytes = memory_resize(c->bytes, c->bytes_capacity, 1);
        }
        memcpy(c->bytes + c->used, bytes, size);
        *MEMORY_PUSH(c->item, c->n_items, c->items_capacity) =
            (struct counted){c->used, size, 0};
        c->used += size;
        *slot = c->n_items;
    }
    c->item[*slot - 1].count += count;
    return *slot - 1;
}

int64_t counts_find(const struct counts *c, const char *bytes, uint32_t size)
{
    return c->n_slots ? (int64_t)*slot_of(c, bytes, size) - 1 : -1;
}

void counts_finish(struct counts *c)
{
    free(c->bytes);
    free(c->item);
    free(c->slot);
    *c = (struct counts){0};
}
