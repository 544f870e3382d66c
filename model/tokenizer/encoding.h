/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes a text by the model of a tokenizer: tokens of a part between raw added tokens. */
#pragma once
#include "masks/base/memory.h"
#include "model/tokenizer/base/aligned.h"
#include "model/tokenizer/post.h"
#include "model/tokenizer/tokenizer.h"
#include <jansson.h>

struct encoding {
    const struct tokenizer *tokenizer;
    struct tokens *tokens;
    struct text_part text;
    uint32_t first; /* token of the text */
};

/* One for each type of model in tokenizer.json. */
struct tokenizer_kind {
    const char *name;
    int (*read)(struct tokenizer *t, const json_t *json,
                struct error *e); /* all of tokenizer.json */
    void (*encode_gap)(struct encoding *in, uint32_t from,
                       uint32_t to); /* text.bytes[from, to) */
    void (*encode_piece)(const struct tokenizer *t, const char *bytes, uint32_t size,
                         struct pipeline_memory *m); /* for pipeline_gap() */
};

extern const struct tokenizer_kind tokenizer_wordpiece, tokenizer_bpe, tokenizer_unigram;

static inline void tokens_push(struct tokens *t, uint32_t token_id, struct span source)
{
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 64;
        t->token_ids = memory_resize(t->token_ids, t->capacity, sizeof *t->token_ids);
        t->span = memory_resize(t->span, t->capacity, sizeof *t->span);
    }
    t->token_ids[t->count] = token_id;
    t->span[t->count++] = (struct token_span){source.begin, source.end};
}

/* The next one, where blanks are left out of offsets. */
void encoding_push_trimmed(struct encoding *in, uint32_t token_id, struct span source);

/* Puts a token of the vocabulary behind those so far. */
static inline void encoding_push(struct encoding *in, uint32_t token_id, struct span source)
{
    if (in->tokenizer->post->trims)
        encoding_push_trimmed(in, token_id, source);
    else
        tokens_push(in->tokens, token_id, source);
}

/* The same, for a token that stands for other text than its own. */
void encoding_push_text(struct encoding *in, uint32_t token_id, struct span source,
                        const char *text, uint32_t size);
