/* SPDX-License-Identifier: Apache-2.0 */
/* Distinct strings, numbered in the order of their first use. */
#pragma once
#include <stdint.h>

struct counted {
    uint64_t begin; /* in the bytes */
    uint32_t size;
    uint64_t count;
};

struct counts { /* zeroed: empty */
    char *bytes;
    uint64_t used, bytes_capacity;
    struct counted *item;
    uint32_t n_items, items_capacity;
    uint32_t *slot, n_slots; /* open hash table of item + 1 */
};

uint32_t counts_add(struct counts *c, const char *bytes, uint32_t size, uint64_t count);
int64_t counts_find(const struct counts *c, const char *bytes, uint32_t size); /* -1: none */
void counts_finish(struct counts *c);
