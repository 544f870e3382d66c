/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of one part: its shards as one run of documents, sentences and tokens, each counted from 0. */
#pragma once
#include "model/data/shard.h"

struct corpus {
    struct data_shard *shard;
    uint64_t *first_token, *first_document; /* [shards + 1] */
    uint32_t shards, capacity;
};

/* Opens and checks `shards` files, and that they are of one prep: the same settings, vocabulary and order. */
int corpus_open(const char *folder, enum data_part part, uint32_t shards, struct corpus *ret,
                struct error *e);
void corpus_close(struct corpus *c); /* a zeroed one is fine */

/* XXH3-128 of the sums of all shards, in order. */
struct shard_sum corpus_sum(const struct corpus *c);

static inline uint64_t corpus_tokens(const struct corpus *c)
{
    return c->first_token[c->shards];
}
static inline uint64_t corpus_documents(const struct corpus *c)
{
    return c->first_document[c->shards];
}

/* The shard where token k stands; k < corpus_tokens(). */
uint32_t corpus_shard(const struct corpus *c, uint64_t k);

/* Copies `count` tokens from token k on, all of one shard. */
void corpus_copy(const struct corpus *c, uint64_t k, uint32_t count, uint32_t *ret);

/* A document: where its sentences begin, [sentences + 1], counted from `base`. */
struct corpus_document {
    uint64_t base;
    const uint32_t *begin;
    uint32_t sentences;
};
struct corpus_document corpus_document(const struct corpus *c, uint64_t document);
