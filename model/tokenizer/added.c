/* SPDX-License-Identifier: Apache-2.0 */
/* Matches are the leftmost and, of these, the longest; a match that is refused for its neighbours is skipped as a
   whole. See AddedVocabulary of the library tokenizers. */
#include "model/tokenizer/added.h"
#include "masks/base/memory.h"
#include "model/tokenizer/base/word_class.h"
#include <stdlib.h>
#include <string.h>

const struct added_token *added_find(const struct added_tokens *a, const char *text)
{
    for (uint32_t k = 0; k < a->count; k++)
        if (!strcmp(a->token[k].text, text))
            return &a->token[k];
    return NULL;
}

static uint32_t next_id(const struct added_tokens *a, const struct vocabulary *v)
{
    uint32_t next = v->pieces;
    for (uint32_t k = 0; k < a->count; k++)
        if (a->token[k].token_id >= next)
            next = a->token[k].token_id + 1;
    return next;
}

int added_add(struct added_tokens *a, struct vocabulary *v, const char *text, int64_t given,
              struct added_flags flags, struct error *e)
{
    const struct added_token *same = added_find(a, text);
    int64_t piece = vocabulary_find(v, text);
    uint32_t token_id = same ? same->token_id : piece >= 0 ? (uint32_t)piece : next_id(a, v);
    if (given >= 0 && given != token_id)
        return error_set(e, ERROR_INPUT, "'%.60s': number %lld, but %u is expected: %s", text,
                         (long long)given, token_id,
                         piece >= 0 ? "the vocabulary has it" : "the next free one");
    if (same) {
        a->token[same - a->token].flags = flags;
        return 0;
    }
    if (piece < 0 && vocabulary_add(v, text, strlen(text), token_id, e) < 0)
        return -1;
    *MEMORY_PUSH(a->token, a->count, a->capacity) =
        (struct added_token){memory_text(text), token_id, flags};
    return 0;
}

static int add_pattern(struct added_tokens *a, uint32_t which, const char *pattern,
                       uint32_t size, struct error *e)
{
    const struct added_token *token = &a->token[which];
    bool normalized = token->flags.normalized;
    struct trie *t = &a->pattern[normalized];
    uint32_t length = 0;
    if (!size)
        return error_set(e, ERROR_INPUT, "the added token '%.60s' is empty after normalisation",
                         token->text);
    int32_t other = trie_longest(t, pattern, size, &length);
    if (other >= 0 && length == size)
        return error_set(e, ERROR_INPUT,
                         "the added tokens '%.60s' and '%.60s' have the same normalised text",
                         a->token[other].text, token->text);
    a->n_begins[normalized] += !a->begins[normalized][(uint8_t)*pattern];
    a->begins[normalized][(uint8_t)*pattern] = true;
    a->a_begin[normalized] = (uint8_t)*pattern;
    a->has_normalized |= normalized;
    return trie_add(t, pattern, size, (int32_t)which) == 0
               ? 0
               : error_set(e, ERROR_INPUT,
                           "the added tokens have more than %d different beginnings",
                           TRIE_MAX_NODES);
}

int added_index(struct added_tokens *a,
                char *(*normalise)(const void *context, const char *text, uint32_t *ret_size),
                const void *context, struct error *e)
{
    int r = 0;
    for (uint32_t k = 0; k < a->count && r == 0; k++) {
        const struct added_token *t = &a->token[k];
        uint32_t size = (uint32_t)strlen(t->text);
        char *pattern =
            t->flags.normalized ? normalise(context, t->text, &size) : memory_text(t->text);
        r = add_pattern(a, k, pattern, size, e);
        free(pattern);
    }
    return r;
}

void added_finish(struct added_tokens *a)
{
    for (uint32_t k = 0; k < a->count; k++)
        free(a->token[k].text);
    free(a->token);
    trie_finish(&a->pattern[0]);
    trie_finish(&a->pattern[1]);
    *a = (struct added_tokens){0};
}

/* The code point that ends at `at`, and where it begins. */
static uint32_t point_before(const char *text, uint32_t at, uint32_t *ret_begin)
{
    const uint8_t *p = (const uint8_t *)text;
    uint32_t k = at - 1, point;
    while (k && at - k < 4 && (p[k] & 0xc0) == 0x80)
        k--;
    if (k + unicode_decode(p + k, p + at, &point) != at) { /* not UTF-8 */
        k = at - 1;
        point = 0xfffd;
    }
    *ret_begin = k;
    return point;
}

static uint32_t blanks_before(const struct unicode *u, const char *text, uint32_t from,
                              uint32_t at)
{
    uint32_t begin;
    while (at > from && u->flags[point_before(text, at, &begin)] & POINT_SPACE && begin >= from)
        at = begin;
    return at;
}

static uint32_t blanks_after(const struct unicode *u, const char *text, uint32_t at,
                             uint32_t size)
{
    const uint8_t *p = (const uint8_t *)text;
    for (uint32_t point, n; at < size; at += n) {
        n = unicode_decode(p + at, p + size, &point);
        if (!(u->flags[point] & POINT_SPACE))
            break;
    }
    return at;
}

static bool stands_alone(const char *text, uint32_t begin, uint32_t end, uint32_t size)
{
    const uint8_t *p = (const uint8_t *)text;
    uint32_t point, ignored;
    if (begin && unicode_is_word(point_before(text, begin, &ignored)))
        return false;
    if (end == size)
        return true;
    unicode_decode(p + end, p + size, &point);
    return !unicode_is_word(point);
}

/* The next place where a pattern may begin. Most vocabularies have patterns that begin with '[' only. */
static uint32_t skip(const struct added_tokens *a, const struct added_search *s, uint32_t at)
{
    uint32_t kinds = a->n_begins[s->normalized];
    if (kinds < 2) {
        const char *found = kinds && at < s->size
                                ? memchr(s->text + at, a->a_begin[s->normalized], s->size - at)
                                : NULL;
        return found ? (uint32_t)(found - s->text) : s->size;
    }
    while (at < s->size && !a->begins[s->normalized][(uint8_t)s->text[at]])
        at++;
    return at;
}

static void take(struct added_search *s, const struct added_token *t, uint32_t begin,
                 uint32_t end)
{
    s->token = t;
    s->begin = begin;
    s->end = s->next = end;
    if (t->flags.eats_left)
        s->begin = blanks_before(s->unicode, s->text, s->done, begin);
    if (t->flags.eats_left && s->begin < s->done)
        s->begin = s->done;
    if (t->flags.eats_right)
        s->end = blanks_after(s->unicode, s->text, end, s->size);
}

bool added_next(const struct added_tokens *a, struct added_search *s)
{
    for (uint32_t at = s->next; (at = skip(a, s, at)) < s->size; at++) {
        uint32_t length = 0;
        int32_t which =
            trie_longest(&a->pattern[s->normalized], s->text + at, s->size - at, &length);
        if (which < 0)
            continue;
        const struct added_token *t = &a->token[which];
        if (!t->flags.single_word || stands_alone(s->text, at, at + length, s->size)) {
            take(s, t, at, at + length);
            return true;
        }
        at += length - 1;
    }
    return false;
}
