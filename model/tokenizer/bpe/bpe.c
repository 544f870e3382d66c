/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/bpe/bpe.h"
#include "masks/base/memory.h"
#include "model/tokenizer/base/unicode.h"
#include "model/tokenizer/bpe/merge.h"
#include <stdlib.h>
#include <string.h>

/* Pieces of so many parts are merged by looking through all pairs, longer ones by a heap. */
enum { SHORT_PIECE = 24, CACHE_SLOTS = 1 << 12, CACHE_BYTES = 16, CACHE_TOKENS = 4 };

/* A piece that was encoded lately. */
struct bpe_merged {
    char bytes[CACHE_BYTES];
    uint8_t size, count; /* size 0: free */
    uint8_t length[CACHE_TOKENS];
    uint32_t token_id[CACHE_TOKENS];
};

void bpe_finish(struct bpe *b)
{
    free(b->merge);
    *b = (struct bpe){0};
}

void bpe_memory_destroy(struct bpe_memory *m)
{
    if (!m)
        return;
    free(m->part);
    free(m->heap);
    free(m->cache);
    free(m);
}

static void add_part(struct bpe_memory *m, int64_t token_id, uint32_t size)
{
    *MEMORY_PUSH(m->part, m->count, m->capacity) =
        (struct bpe_part){.token_id = (uint32_t)token_id, .size = size};
}

/* A token for each byte of the character, if all have one. */
static bool add_spare(const struct bpe *b, struct bpe_memory *m, const char *bytes,
                      uint32_t size)
{
    for (uint32_t k = 0; k < size; k++)
        if (b->spare[(uint8_t)bytes[k]] < 0)
            return false;
    for (uint32_t k = 0; k < size; k++)
        add_part(m, b->spare[(uint8_t)bytes[k]], 1);
    return true;
}

/* The characters of a piece. An unknown one waits for the next known one or, without fuse_unknown, for any next one. */
static void cut_characters(const struct bpe *b, struct bpe_memory *m, const char *bytes,
                           uint32_t size)
{
    const uint8_t *p = (const uint8_t *)bytes;
    uint32_t unknown = 0; /* bytes that wait */
    for (uint32_t at = 0, n, point; at < size; at += n) {
        n = unicode_decode(p + at, p + size, &point);
        int64_t token_id = vocabulary_find_part(b->vocabulary, bytes + at, n);
        if (token_id < 0 && add_spare(b, m, bytes + at, n))
            continue;
        if (unknown && (token_id >= 0 || !b->fuse_unknown)) {
            add_part(m, b->unknown, unknown);
            unknown = 0;
        }
        if (token_id >= 0)
            add_part(m, token_id, n);
        else if (b->unknown >= 0)
            unknown += n;
    }
    if (unknown)
        add_part(m, b->unknown, unknown);
}

static void cut_piece(const struct bpe *b, struct bpe_memory *m, const char *bytes,
                      uint32_t size)
{
    m->count = 0;
    if (!b->bytes) {
        cut_characters(b, m, bytes, size);
        return;
    }
    for (uint32_t k = 0; k < size; k++)
        add_part(m, b->byte[(uint8_t)bytes[k]], 1);
}

/* Merges a short piece: m->part[0, m->count) shrinks. */
static void merge_short(const struct bpe *b, struct bpe_memory *m)
{
    const struct bpe_merge *merge[SHORT_PIECE];
    struct bpe_part *part = m->part;
    uint32_t n = m->count;
    for (uint32_t k = 0; k + 1 < n; k++)
        merge[k] = bpe_find(b, part[k].token_id, part[k + 1].token_id);
    for (;;) {
        uint32_t best = UINT32_MAX, at = 0;
        for (uint32_t k = 0; k + 1 < n; k++)
            if (merge[k] && merge[k]->rank < best) {
                best = merge[k]->rank;
                at = k;
            }
        if (best == UINT32_MAX)
            break;
        part[at].token_id = merge[at]->token_id;
        part[at].size += part[at + 1].size;
        n--;
        memmove(part + at + 1, part + at + 2, (n - at - 1) * sizeof *part);
        memmove(merge + at, merge + at + 1, (n - at - 1) * sizeof *merge);
        merge[at] = at + 1 < n ? bpe_find(b, part[at].token_id, part[at + 1].token_id) : NULL;
        if (at)
            merge[at - 1] = bpe_find(b, part[at - 1].token_id, part[at].token_id);
    }
    m->count = n;
}

static void add_symbol(struct symbols *ret, uint32_t token_id, uint32_t size)
{
    uint32_t begin = ret->count ? ret->list[ret->count - 1].end : 0;
    *MEMORY_PUSH(ret->list, ret->count, ret->capacity) =
        (struct symbol){token_id, begin, begin + size};
}

static void encode(const struct bpe *b, const char *bytes, uint32_t size, struct bpe_memory *m,
                   struct symbols *ret)
{
    cut_piece(b, m, bytes, size);
    if (b->bytes && m->count <= SHORT_PIECE)
        merge_short(b, m);
    else
        bpe_merge_parts(b, m);
    for (uint32_t k = 0; k < m->count; k++)
        if (m->part[k].size)
            add_symbol(ret, m->part[k].token_id, m->part[k].size);
}

/* The piece's place among the cached ones; *key gets its bytes, filled up with zeros. */
static struct bpe_merged *cached(struct bpe_memory *m, const char *bytes, uint32_t size,
                                 char key[CACHE_BYTES])
{
    uint64_t half[2];
    memset(key, 0, CACHE_BYTES);
    memcpy(key, bytes, size);
    memcpy(half, key, sizeof half);
    uint64_t hash = (half[0] ^ size) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32 ^ half[1]) * UINT64_C(0x9e3779b97f4a7c15);
    return &m->cache[hash >> 52];
}

static void keep(struct bpe_merged *c, const char key[CACHE_BYTES], uint32_t size,
                 const struct symbols *from)
{
    if (from->count > CACHE_TOKENS)
        return;
    memcpy(c->bytes, key, CACHE_BYTES);
    c->size = (uint8_t)size;
    c->count = (uint8_t)from->count;
    for (uint32_t k = 0; k < from->count; k++) {
        c->token_id[k] = from->list[k].token_id;
        c->length[k] = (uint8_t)(from->list[k].end - from->list[k].begin);
    }
}

/* Memory for this model: what another one has cached goes. */
static struct bpe_memory *prepare(const struct bpe *b, struct bpe_memory **memory)
{
    struct bpe_memory *m = *memory;
    if (!m) {
        m = *memory = memory_new(1, sizeof *m);
        m->cache = memory_new(CACHE_SLOTS, sizeof *m->cache);
    }
    if (m->owner != b)
        memset(m->cache, 0, CACHE_SLOTS * sizeof *m->cache);
    m->owner = b;
    return m;
}

/* The whole piece where ignore_merges is set and the vocabulary has it. */
static bool take_whole(const struct bpe *b, const char *bytes, uint32_t size,
                       struct symbols *ret)
{
    int64_t found = b->ignore_merges ? vocabulary_find_part(b->vocabulary, bytes, size) : -1;
    if (found >= 0)
        add_symbol(ret, (uint32_t)found, size);
    return found >= 0;
}

void bpe_encode(const struct bpe *b, const char *bytes, uint32_t size,
                struct bpe_memory **memory, struct symbols *ret)
{
    struct bpe_memory *m = prepare(b, memory);
    char key[CACHE_BYTES];
    ret->count = 0;
    if (take_whole(b, bytes, size, ret))
        return;
    if (size > CACHE_BYTES) {
        encode(b, bytes, size, m, ret);
        return;
    }
    struct bpe_merged *c = cached(m, bytes, size, key);
    if (c->size == size && !memcmp(c->bytes, key, CACHE_BYTES)) {
        for (uint32_t k = 0; k < c->count; k++)
            add_symbol(ret, c->token_id[k], c->length[k]);
        return;
    }
    encode(b, bytes, size, m, ret);
    keep(c, key, size, ret);
}
