/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-pair encoding: a piece is cut into characters, or bytes, and the pair of neighbours with the lowest rank is merged,
   again and again. */
#pragma once
#include "masks/base/error.h"
#include "model/tokenizer/base/symbols.h"
#include "model/tokenizer/base/vocabulary.h"
#include <jansson.h>
#include <stdbool.h>

struct bpe_merge;

struct bpe { /* zeroed: no merges */
    const struct vocabulary *vocabulary;
    struct bpe_merge *merge; /* open hash table, its capacity a power of two */
    uint32_t n_merges, capacity;
    int64_t unknown; /* -1: what is not in the vocabulary is left out */
    bool fuse_unknown, ignore_merges;
    bool bytes;         /* pieces are bytes, each of which has a token; else characters */
    int64_t byte[256];  /* token of a byte's character in GPT-2's alphabet, -1: none */
    int64_t spare[256]; /* "<0x41>", with byte_fallback; -1: none */
};

/* Options and merges of tokenizer.json's model. The vocabulary is indexed and outlives the model. */
int bpe_read(struct bpe *ret, const struct vocabulary *v, const json_t *model, struct error *e);
/* The text of a merges.txt, where options are those of RoBERTa. */
int bpe_parse(struct bpe *ret, const struct vocabulary *v, const char *merges, size_t size,
              struct error *e);
void bpe_finish(struct bpe *b);

struct bpe_memory;
void bpe_memory_destroy(struct bpe_memory *m);

/* Writes the tokens of a piece to *ret, in the place of what it held. *memory keeps merges from call to call: null before
   the first one; bpe_memory_destroy() frees it. */
void bpe_encode(const struct bpe *b, const char *bytes, uint32_t size,
                struct bpe_memory **memory, struct symbols *ret);

/* The merge of a pair, or null. */
const struct bpe_merge *bpe_find(const struct bpe *b, uint32_t first, uint32_t second);
