/* SPDX-License-Identifier: Apache-2.0 */
/* Strings to numbers, byte by byte: one walk finds the longest entry that begins a text. */
#pragma once
#include <stdint.h>

struct trie_edge;

/* Zeroed: empty. Node 0 is the root. */
struct trie {
    struct trie_edge *edge; /* a hash table, its capacity a power of two */
    uint32_t n_edges, capacity;
    int32_t *value; /* of each node, -1: no entry ends here */
    uint32_t n_nodes, nodes_capacity;
};

enum { TRIE_MAX_NODES = 1 << 24 };

/* A later value for the same bytes replaces the earlier one. False where the trie would have too many nodes;
   it is then good for trie_finish alone. */
int trie_add(struct trie *t, const char *bytes, uint32_t size, int32_t value);
void trie_finish(struct trie *t);

/* The value of the longest entry of at least one byte that begins bytes[0, size), its length in
   *ret_size; -1: none. */
int32_t trie_longest(const struct trie *t, const char *bytes, uint32_t size,
                     uint32_t *ret_size);

/* The node that the byte leads to from a node; 0: none. *ret_value is the value of the entry that ends there, or -1. */
uint32_t trie_step(const struct trie *t, uint32_t node, uint8_t byte, int32_t *ret_value);
