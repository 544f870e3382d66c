/* SPDX-License-Identifier: Apache-2.0 */
/* The text is split into words, and each word into its longest pieces from the left. A word with a part that is no token
   is unknown as a whole. */
#include "model/tokenizer/encoding.h"

static void cut_word(void *context, const struct word *w)
{
    struct encoding *in = context;
    const struct vocabulary *v = &in->tokenizer->vocabulary;
    uint32_t start = in->tokens->count, size = 0;
    bool known = w->chars <= in->tokenizer->rules.max_chars;
    for (uint32_t at = 0; known && at < w->size; at += size) {
        int32_t token_id =
            trie_longest(at ? &v->follow : &v->begin, w->bytes + at, w->size - at, &size);
        if (token_id < 0)
            known = false;
        else
            encoding_push(in, (uint32_t)token_id,
                          (struct span){w->begin[at], w->end[at + size - 1]});
    }
    if (known)
        return;
    in->tokens->count = start;
    encoding_push(in, in->tokenizer->unknown, (struct span){w->first, w->last});
}

/* The words and normalised added tokens of the text, in which no raw added token is. */
static void encode_gap(struct encoding *in, uint32_t from, uint32_t to)
{
    const struct tokenizer *t = in->tokenizer;
    const struct word_splitter splitter = {t->unicode, &t->rules, cut_word, in};
    struct words *w = &in->tokens->words;
    if (!t->added.has_normalized) {
        words_split(w, &splitter, in->text.bytes, from, to);
        return;
    }
    words_normalise(w, &splitter, in->text.bytes, from, to);
    struct added_search m = {
        .unicode = t->unicode, .text = w->bytes, .size = w->size, .normalized = true};
    while (added_next(&t->added, &m)) {
        words_cut(w, &splitter, m.done, m.begin);
        if (m.begin < m.end)
            encoding_push_text(in, m.token->token_id,
                               (struct span){w->begin[m.begin], w->end[m.end - 1]},
                               w->bytes + m.begin, m.end - m.begin);
        m.done = m.end;
    }
    words_cut(w, &splitter, m.done, w->size);
    w->size = 0;
}

const struct tokenizer_kind tokenizer_wordpiece = {.name = "WordPiece",
                                                   .encode_gap = encode_gap};
