/* SPDX-License-Identifier: Apache-2.0 */
/* Viterbi over the byte positions of a piece, in the order of encode_optimized() of the library tokenizers, so that equal
   scores choose alike. */
#include "model/tokenizer/unigram/unigram.h"
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include "model/tokenizer/base/unicode.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double unknown_penalty = 10;

/* The best way to the end of a position. */
struct node {
    double score;
    uint32_t token_id, begin; /* begin UINT32_MAX: no way ends here */
};

struct unigram_memory {
    struct node *node;
    uint32_t capacity;
};

void unigram_memory_destroy(struct unigram_memory *m)
{
    if (!m)
        return;
    free(m->node);
    free(m);
}

void unigram_finish(struct unigram *u)
{
    free(u->score);
    *u = (struct unigram){0};
}

static int read_vocabulary(struct unigram *u, struct vocabulary *v, const json_t *list,
                           struct error *e)
{
    double least = INFINITY;
    u->count = (uint32_t)json_array_size(list);
    u->score = memory_new(u->count, sizeof *u->score);
    for (uint32_t k = 0; k < u->count; k++) {
        const json_t *entry = json_array_get(list, k), *score = json_array_get(entry, 1);
        const char *token = json_string_value(json_array_get(entry, 0));
        if (!token || !json_is_number(score) || json_array_size(entry) != 2)
            return error_set(e, ERROR_INPUT, "vocab: entry %u: [TOKEN, SCORE] is expected", k);
        if (vocabulary_add(v, token, strlen(token), k, e) < 0)
            return error_prefix(e, "vocab");
        u->score[k] = json_number_value(score);
        least = u->score[k] < least ? u->score[k] : least;
    }
    u->unknown_score = least - unknown_penalty;
    return 0;
}

static void find_spare(struct unigram *u, bool fallback)
{
    for (int k = 0; k < 256; k++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)k);
        u->spare[k] = fallback ? vocabulary_find(u->vocabulary, name) : -1;
    }
}

int unigram_read(struct unigram *ret, struct vocabulary *v, const json_t *model,
                 struct error *e)
{
    const json_t *list = json_object_get(model, "vocab");
    uint32_t unknown = UINT32_MAX;
    bool fallback = false;
    *ret = (struct unigram){.vocabulary = v};
    if (json_take_u32(model, "unk_id", &unknown, e) < 0 ||
        json_take_bool(model, "byte_fallback", &fallback, e) < 0)
        return -1;
    if (!json_is_array(list) || json_array_size(list) > VOCABULARY_MAX_TOKENS)
        return error_set(e, ERROR_INPUT, "vocab: a list of at most %d is expected",
                         VOCABULARY_MAX_TOKENS);
    if (unknown >= json_array_size(list))
        return error_set(e, ERROR_INPUT, "unk_id: a token of vocab is expected");
    ret->unknown = unknown;
    if (read_vocabulary(ret, v, list, e) < 0 || vocabulary_index(v, NULL, e) < 0)
        return -1;
    v->pieces = ret->count;
    find_spare(ret, fallback);
    return 0;
}

static void start(struct unigram_memory *m, uint32_t size)
{
    if (size >= m->capacity) {
        m->capacity = size < UINT32_MAX / 2 ? 2 * size + 64 : UINT32_MAX;
        m->node = memory_resize(m->node, m->capacity, sizeof *m->node);
    }
    for (uint32_t k = 0; k <= size; k++)
        m->node[k].begin = UINT32_MAX;
    m->node[0].score = 0;
}

static inline void offer(struct node *to, double score, uint32_t token_id, uint32_t begin)
{
    if (to->begin == UINT32_MAX || score > to->score)
        *to = (struct node){score, token_id, begin};
}

/* Offers each token that begins at byte `at` to the node where it ends, and the unknown token for one character if none
   covers it alone. */
static void extend(const struct unigram *u, struct node *node, const char *bytes, uint32_t at,
                   uint32_t end, uint32_t size)
{
    double here = node[at].score;
    bool single = false;
    for (uint32_t k = at, place = 0; k < size; k++) {
        int32_t token_id;
        place = trie_step(&u->vocabulary->begin, place, (uint8_t)bytes[k], &token_id);
        if (!place)
            break;
        if (token_id < 0)
            continue;
        offer(&node[k + 1], u->score[token_id] + here, (uint32_t)token_id, at);
        single |= k + 1 == end;
    }
    if (!single)
        offer(&node[end], u->unknown_score + here, u->unknown, at);
}

static void push(struct symbols *s, uint32_t token_id, uint32_t begin, uint32_t end)
{
    *MEMORY_PUSH(s->list, s->count, s->capacity) = (struct symbol){token_id, begin, end};
}

/* Neighbouring unknown characters are one token: of the vocabulary, one for each byte, or the unknown one. */
static void push_unknown(const struct unigram *u, const char *bytes, struct symbol x,
                         struct symbols *ret)
{
    uint32_t size = x.end - x.begin;
    int64_t found = vocabulary_find_part(u->vocabulary, bytes + x.begin, size);
    bool spare = found < 0;
    for (uint32_t k = x.begin; k < x.end && spare; k++)
        spare = u->spare[(uint8_t)bytes[k]] >= 0;
    if (!spare) {
        push(ret, found < 0 ? u->unknown : (uint32_t)found, x.begin, x.end);
        return;
    }
    for (uint32_t k = x.begin; k < x.end; k++)
        push(ret, (uint32_t)u->spare[(uint8_t)bytes[k]], x.begin, x.end);
}

static void reverse(struct symbols *s)
{
    for (uint32_t k = 0, last = s->count - 1; k < s->count / 2; k++) {
        struct symbol x = s->list[k];
        s->list[k] = s->list[last - k];
        s->list[last - k] = x;
    }
}

/* The best way, from its end; unknown characters joined. */
static void collect(const struct unigram *u, const struct node *node, uint32_t size,
                    struct symbols *ret)
{
    for (uint32_t at = size; at > 0; at = node[at].begin) {
        struct symbol *last = ret->count ? &ret->list[ret->count - 1] : NULL;
        if (last && last->token_id == u->unknown && node[at].token_id == u->unknown)
            last->begin = node[at].begin;
        else
            push(ret, node[at].token_id, node[at].begin, at);
    }
    reverse(ret);
}

static bool has_unknown(const struct unigram *u, const struct symbols *s)
{
    for (uint32_t k = 0; k < s->count; k++)
        if (s->list[k].token_id == u->unknown)
            return true;
    return false;
}

/* Replaces unknown tokens as push_unknown() does. */
static void resolve(const struct unigram *u, const char *bytes, struct symbols *ret)
{
    uint32_t n = ret->count;
    struct symbol *old = memory_copy(ret->list, n * sizeof *old);
    ret->count = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (old[k].token_id == u->unknown)
            push_unknown(u, bytes, old[k], ret);
        else
            push(ret, old[k].token_id, old[k].begin, old[k].end);
    }
    free(old);
}

void unigram_encode(const struct unigram *u, const char *bytes, uint32_t size,
                    struct unigram_memory **memory, struct symbols *ret)
{
    struct unigram_memory *m = *memory = *memory ? *memory : memory_new(1, sizeof *m);
    const uint8_t *p = (const uint8_t *)bytes;
    ret->count = 0;
    start(m, size);
    for (uint32_t at = 0, end, point; at < size; at = end) {
        end = at + unicode_decode(p + at, p + size, &point);
        extend(u, m->node, bytes, at, end, size);
    }
    collect(u, m->node, size, ret);
    if (has_unknown(u, ret))
        resolve(u, bytes, ret);
}
