/* SPDX-License-Identifier: Apache-2.0 */
/* What a model of a tokenizer does with a text: tokens of a part between raw added tokens. */
#pragma once
#include "model/tokenizer/base/aligned.h"
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

/* Puts a token of the vocabulary behind those so far. */
void encoding_push(struct encoding *in, uint32_t token_id, struct span source);
/* The same, for a token that stands for other text than its own. */
void encoding_push_text(struct encoding *in, uint32_t token_id, struct span source,
                        const char *text, uint32_t size);
