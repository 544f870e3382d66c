/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/base/vocabulary.h"
#include "masks/base/memory.h"
#include "model/tokenizer/base/unicode.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_utf8(const char *bytes, size_t size)
{
    const uint8_t *p = (const uint8_t *)bytes, *end = p + size;
    while (p < end) {
        uint32_t point, n = unicode_decode(p, end, &point);
        if (point == 0xfffd && (n != 3 || p[0] != 0xef))
            return false;
        p += n;
    }
    return true;
}

int vocabulary_add(struct vocabulary *v, const char *token, size_t size, uint64_t token_id,
                   struct error *e)
{
    if (token_id >= VOCABULARY_MAX_TOKENS)
        return error_set(e, ERROR_INPUT, "token number %llu: at most %d are expected",
                         (unsigned long long)token_id, VOCABULARY_MAX_TOKENS);
    if (!is_utf8(token, size) || memchr(token, 0, size))
        return error_set(e, ERROR_INPUT, "token %llu is no UTF-8 text",
                         (unsigned long long)token_id);
    while (v->count <= token_id)
        *MEMORY_PUSH(v->token, v->count, v->capacity) = NULL;
    if (v->token[token_id])
        return error_set(e, ERROR_INPUT, "two tokens with the number %llu",
                         (unsigned long long)token_id);
    v->token[token_id] = memory_new(size + 1, 1);
    memcpy(v->token[token_id], token, size);
    return 0;
}

/* Removes the trailing whitespace that Rust's trim_end() removes, within ASCII. No token ends in
   another of Unicode's blanks. */
static size_t trim(const char *line, size_t size)
{
    while (size &&
           (line[size - 1] == ' ' || (line[size - 1] >= '\t' && line[size - 1] <= '\r')))
        size--;
    return size;
}

int vocabulary_parse(struct vocabulary *ret, const char *bytes, size_t size, const char *path,
                     struct error *e)
{
    uint64_t line = 0;
    for (size_t at = 0; at < size; line++) {
        const char *newline = memchr(bytes + at, '\n', size - at);
        size_t length = newline ? (size_t)(newline - (bytes + at)) : size - at;
        if (vocabulary_add(ret, bytes + at, trim(bytes + at, length), line, e) < 0)
            return error_prefix(e, "%s:%llu", path, (unsigned long long)line + 1);
        at += length + 1;
    }
    return line ? 0 : error_set(e, ERROR_INPUT, "%s: no token, one a line is expected", path);
}

int vocabulary_index(struct vocabulary *v, const char *prefix, struct error *e)
{
    size_t skip = prefix ? strlen(prefix) : 0;
    bool empty = false;
    for (uint32_t k = 0; k < v->count; k++) {
        const char *token = v->token[k];
        empty |= token && !*token;
        if (!token || !*token)
            continue;
        v->pieces += vocabulary_find(v, token) < 0;
        int r = trie_add(&v->begin, token, (uint32_t)strlen(token), (int32_t)k);
        if (r == 0 && prefix && !strncmp(token, prefix, skip) && token[skip])
            r = trie_add(&v->follow, token + skip, (uint32_t)strlen(token + skip), (int32_t)k);
        if (r < 0)
            return error_set(e, ERROR_INPUT,
                             "the vocabulary is too large: its tokens begin in "
                             "more than %d ways",
                             TRIE_MAX_NODES);
    }
    v->pieces += empty;
    return 0;
}

int64_t vocabulary_find(const struct vocabulary *v, const char *token)
{
    return vocabulary_find_part(v, token, (uint32_t)strlen(token));
}

int64_t vocabulary_find_part(const struct vocabulary *v, const char *token, uint32_t size)
{
    uint32_t length = 0;
    int32_t token_id = trie_longest(&v->begin, token, size, &length);
    return token_id >= 0 && length == size ? token_id : -1;
}

void vocabulary_finish(struct vocabulary *v)
{
    for (uint32_t k = 0; k < v->count; k++)
        free(v->token[k]);
    free(v->token);
    trie_finish(&v->begin);
    trie_finish(&v->follow);
    *v = (struct vocabulary){0};
}
