/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/corpus.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <xxhash.h>

static int check_shard(const struct corpus *c, uint32_t k, enum data_part part,
                       const char *path, struct error *e)
{
    const struct shard_header *h = &c->shard[k].header, *first = &c->shard[0].header;
    bool fits = h->part == part && h->shard == k && h->vocabulary == first->vocabulary &&
                shard_sum_equal(h->vocabulary_sum, first->vocabulary_sum) &&
                h->seed == first->seed && h->length == first->length &&
                h->pairing == first->pairing;
    return fits ? 0
                : error_set(e, ERROR_INPUT, "%s: is of another prep than the files beside it",
                            path);
}

static int open_shard(struct corpus *c, const char *folder, enum data_part part,
                      struct error *e)
{
    uint32_t k = c->shards;
    char *path = shard_path(folder, part, k);
    int r = shard_open(path, SHARD_TOKENS, &c->shard[k], e);
    if (r == 0) {
        c->shards++;
        c->first_token[k + 1] = c->first_token[k] + c->shard[k].header.tokens;
        c->first_document[k + 1] = c->first_document[k] + c->shard[k].header.documents;
        r = check_shard(c, k, part, path, e);
    }
    free(path);
    return r;
}

int corpus_open(const char *folder, enum data_part part, uint32_t shards, struct corpus *ret,
                struct error *e)
{
    struct corpus c = {
        .shard = memory_new(shards, sizeof *c.shard),
        .first_token = memory_new((size_t)shards + 1, sizeof *c.first_token),
        .first_document = memory_new((size_t)shards + 1, sizeof *c.first_document),
    };
    int r = 0;
    while (r == 0 && c.shards < shards)
        r = open_shard(&c, folder, part, e);
    if (r < 0)
        corpus_close(&c);
    else
        *ret = c;
    return r;
}

void corpus_close(struct corpus *c)
{
    for (uint32_t k = 0; k < c->shards; k++)
        shard_close(&c->shard[k]);
    free(c->shard);
    free(c->first_token);
    free(c->first_document);
    *c = (struct corpus){0};
}

struct shard_sum corpus_sum(const struct corpus *c)
{
    XXH3_state_t *state = XXH3_createState();
    XXH3_128bits_reset(state);
    for (uint32_t k = 0; k < c->shards; k++)
        XXH3_128bits_update(state, &c->shard[k].header.body_sum, sizeof(struct shard_sum));
    XXH128_hash_t h = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    return (struct shard_sum){h.low64, h.high64};
}

/* The last of first[0 .. count] that is not above k, below count. */
static uint32_t find(const uint64_t *first, uint32_t count, uint64_t k)
{
    uint32_t low = 0, high = count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (first[middle] <= k)
            low = middle;
        else
            high = middle;
    }
    return low;
}

uint32_t corpus_shard(const struct corpus *c, uint64_t k)
{
    return find(c->first_token, c->shards, k);
}

void corpus_copy(const struct corpus *c, uint64_t k, uint32_t count, uint32_t *ret)
{
    uint32_t which = corpus_shard(c, k);
    const struct data_shard *s = &c->shard[which];
    uint64_t first = k - c->first_token[which];
    for (uint32_t j = 0; j < count; j++)
        ret[j] = shard_token(s, first + j);
}

struct corpus_document corpus_document(const struct corpus *c, uint64_t document)
{
    uint32_t which = find(c->first_document, c->shards, document);
    const struct data_shard *s = &c->shard[which];
    uint64_t k = document - c->first_document[which];
    return (struct corpus_document){c->first_token[which], s->sentence + s->document[k],
                                    s->document[k + 1] - s->document[k]};
}
