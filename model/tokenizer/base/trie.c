/* SPDX-License-Identifier: Apache-2.0 */
/* All edges are in one open hash table, keyed by node and byte: nothing is sorted, and a walk costs one probe
   for each byte. */
#include "model/tokenizer/base/trie.h"
#include "masks/base/memory.h"
#include <stdlib.h>

struct trie_edge {
    uint32_t key; /* node << 8 | byte */
    uint32_t to;  /* 0: free, no edge leads to the root */
};

static uint32_t slot_of(const struct trie *t, uint32_t key)
{
    uint32_t mask = t->capacity - 1, at = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    for (at &= mask; t->edge[at].to && t->edge[at].key != key;)
        at = (at + 1) & mask;
    return at;
}

static void grow(struct trie *t)
{
    struct trie old = *t;
    t->capacity = old.capacity ? 2 * old.capacity : 1024;
    t->edge = memory_new(t->capacity, sizeof *t->edge);
    for (uint32_t k = 0; k < old.capacity; k++)
        if (old.edge[k].to)
            t->edge[slot_of(t, old.edge[k].key)] = old.edge[k];
    free(old.edge);
}

static uint32_t add_node(struct trie *t)
{
    *MEMORY_PUSH(t->value, t->n_nodes, t->nodes_capacity) = -1;
    return t->n_nodes - 1;
}

int trie_add(struct trie *t, const char *bytes, uint32_t size, int32_t value)
{
    uint32_t node = t->n_nodes ? 0 : add_node(t);
    for (uint32_t k = 0; k < size; k++) {
        if (2 * t->n_edges >= t->capacity)
            grow(t);
        uint32_t key = node << 8 | (uint8_t)bytes[k], at = slot_of(t, key);
        if (!t->edge[at].to) {
            if (t->n_nodes == TRIE_MAX_NODES)
                return -1;
            t->edge[at] = (struct trie_edge){key, add_node(t)};
            t->n_edges++;
        }
        node = t->edge[at].to;
    }
    t->value[node] = value;
    return 0;
}

void trie_finish(struct trie *t)
{
    free(t->edge);
    free(t->value);
    *t = (struct trie){0};
}

int32_t trie_longest(const struct trie *t, const char *bytes, uint32_t size, uint32_t *ret_size)
{
    int32_t best = -1;
    if (!t->n_edges)
        return best;
    for (uint32_t k = 0, node = 0; k < size; k++) {
        node = t->edge[slot_of(t, node << 8 | (uint8_t)bytes[k])].to;
        if (!node)
            break;
        if (t->value[node] >= 0) {
            best = t->value[node];
            *ret_size = k + 1;
        }
    }
    return best;
}

uint32_t trie_step(const struct trie *t, uint32_t node, uint8_t byte, int32_t *ret_value)
{
    uint32_t to = t->n_edges ? t->edge[slot_of(t, node << 8 | byte)].to : 0;
    *ret_value = to ? t->value[to] : -1;
    return to;
}
