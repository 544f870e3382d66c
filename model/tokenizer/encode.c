/* SPDX-License-Identifier: Apache-2.0 */
/* Added tokens are cut out of the raw text. The rest is split into words, and each word into its longest
   pieces from the left. A word with a part that is no token is unknown as a whole. */
#include "masks/base/memory.h"
#include "model/tokenizer/tokenizer.h"
#include <stdlib.h>
#include <string.h>

struct encoding {
    const struct tokenizer *tokenizer;
    struct tokens *tokens;
};

void tokens_finish(struct tokens *t)
{
    free(t->token_ids);
    free(t->span);
    words_finish(&t->words);
    *t = (struct tokens){0};
}

static inline void push(struct tokens *t, uint32_t token_id, uint32_t begin, uint32_t end)
{
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 64;
        t->token_ids = memory_resize(t->token_ids, t->capacity, sizeof *t->token_ids);
        t->span = memory_resize(t->span, t->capacity, sizeof *t->span);
    }
    t->token_ids[t->count] = token_id;
    t->span[t->count++] = (struct token_span){begin, end};
}

static void cut_word(void *context, const struct word *w)
{
    const struct encoding *in = context;
    const struct vocabulary *v = &in->tokenizer->vocabulary;
    uint32_t start = in->tokens->count, size = 0;
    bool known = w->chars <= in->tokenizer->rules.max_chars;
    for (uint32_t at = 0; known && at < w->size; at += size) {
        int32_t token_id =
            trie_longest(at ? &v->follow : &v->begin, w->bytes + at, w->size - at, &size);
        if (token_id < 0)
            known = false;
        else
            push(in->tokens, (uint32_t)token_id, w->begin[at], w->end[at + size - 1]);
    }
    if (known)
        return;
    in->tokens->count = start;
    push(in->tokens, in->tokenizer->unknown, w->first, w->last);
}

/* The words and normalised added tokens of text[from, to), in which no raw added token is. */
static void encode_gap(struct encoding *in, const char *text, uint32_t from, uint32_t to)
{
    const struct tokenizer *t = in->tokenizer;
    const struct word_splitter splitter = {t->unicode, &t->rules, cut_word, in};
    struct words *w = &in->tokens->words;
    if (!t->added.has_normalized) {
        words_split(w, &splitter, text, from, to);
        return;
    }
    words_normalise(w, &splitter, text, from, to);
    struct added_search m = {
        .unicode = t->unicode, .text = w->bytes, .size = w->size, .normalized = true};
    while (added_next(&t->added, &m)) {
        words_cut(w, &splitter, m.done, m.begin);
        if (m.begin < m.end)
            push(in->tokens, m.token->token_id, w->begin[m.begin], w->end[m.end - 1]);
        m.done = m.end;
    }
    words_cut(w, &splitter, m.done, w->size);
    w->size = 0;
}

static void encode_part(const struct tokenizer *t, struct text_part part, struct tokens *ret)
{
    struct encoding in = {t, ret};
    struct added_search m = {.unicode = t->unicode, .text = part.bytes, .size = part.size};
    while (added_next(&t->added, &m)) {
        if (m.done < m.begin)
            encode_gap(&in, part.bytes, m.done, m.begin);
        if (m.begin < m.end)
            push(ret, m.token->token_id, m.begin, m.end);
        m.done = m.end;
    }
    if (m.done < part.size)
        encode_gap(&in, part.bytes, m.done, part.size);
}

struct share {
    uint32_t a, b;
};

/* How many tokens of each part stay where `capacity` fit: the longer part is cut. Where both are cut and
   `capacity` is odd, the one left over is the longer part's with HuggingFace, the first part's with Google.
   */
static struct share share_tokens(struct share n, uint32_t capacity,
                                 enum tokenizer_compat compat)
{
    if (n.a + n.b <= capacity)
        return n;
    uint32_t half = capacity / 2, rest = capacity - half;
    uint32_t shorter = n.a < n.b ? n.a : n.b;
    if (shorter <= half)
        return n.a <= n.b ? (struct share){n.a, capacity - n.a}
                          : (struct share){capacity - n.b, n.b};
    bool first = compat == TOKENIZER_GOOGLE || n.a > n.b;
    return first ? (struct share){rest, half} : (struct share){half, rest};
}

/* Cuts [CLS] A [SEP] B [SEP] to fewer tokens of A and B. */
static void shorten(struct tokens *t, struct share n, struct share keep, bool pair)
{
    uint32_t moved = 1 + keep.b; /* [SEP] and what stays of B */
    memmove(t->token_ids + 1 + keep.a, t->token_ids + 1 + n.a, moved * sizeof *t->token_ids);
    memmove(t->span + 1 + keep.a, t->span + 1 + n.a, moved * sizeof *t->span);
    t->cut = true;
    if (pair) {
        uint32_t end = t->token_ids[t->count - 1];
        t->count = keep.a + keep.b + 2;
        push(t, end, 0, 0);
    } else {
        t->count = keep.a + 2;
    }
}

void tokenizer_encode(const struct tokenizer *t, struct text_part a, struct text_part b,
                      uint32_t max_length, struct tokens *ret)
{
    struct share n = {0, 0};
    bool pair = b.bytes != NULL;
    ret->count = 0;
    ret->cut = false;
    push(ret, t->begin, 0, 0);
    encode_part(t, a, ret);
    n.a = ret->count - 1;
    push(ret, t->end, 0, 0);
    if (pair) {
        encode_part(t, b, ret);
        n.b = ret->count - 2 - n.a;
        push(ret, t->end, 0, 0);
    }
    struct share keep =
        max_length ? share_tokens(n, max_length - (pair ? 3 : 2), t->compat) : n;
    if (keep.a < n.a || keep.b < n.b)
        shorten(ret, n, keep, pair);
    ret->first_part = keep.a + 2;
}
