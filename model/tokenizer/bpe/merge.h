/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "model/tokenizer/bpe/bpe.h"

struct bpe_merge {
    uint32_t first, second; /* token ids; first UINT32_MAX: free */
    uint32_t rank, token_id;
};

enum { BPE_FREE = UINT32_MAX };

/* A token of a piece as it grows. */
struct bpe_part {
    uint32_t token_id, size; /* size 0: merged into the one before */
    int32_t before, after;   /* -1: none */
};

struct bpe_candidate {
    uint32_t rank, at, token_id;
};

struct bpe_memory {
    struct bpe_part *part;
    uint32_t count, capacity;
    struct bpe_candidate *heap;
    uint32_t n_heap, heap_capacity;
    struct bpe_merged *cache;
    const struct bpe *owner; /* of what is cached */
};

/* Where the merge of a pair is, or may be put. */
struct bpe_merge *bpe_slot(const struct bpe *b, uint32_t first, uint32_t second);
/* Merges the parts; those that are left have a size. */
void bpe_merge_parts(const struct bpe *b, struct bpe_memory *m);
