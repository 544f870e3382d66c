/* SPDX-License-Identifier: Apache-2.0 */
/* WordPiece as BERT has it: text to token ids, each with the bytes it came from. By default results equal
   those of HuggingFace's fast tokenizer, on request those of Google's tokenization.py. */
#pragma once
#include "masks/base/error.h"
#include "model/tokenizer/added.h"
#include "model/tokenizer/vocabulary.h"
#include "model/tokenizer/words.h"

enum tokenizer_compat { TOKENIZER_HF, TOKENIZER_GOOGLE };

struct tokenizer {
    struct vocabulary vocabulary;
    struct word_rules rules;
    const struct unicode *unicode;
    struct added_tokens added;
    uint32_t unknown, begin, end, pad; /* [UNK] [CLS] [SEP] [PAD] */
    int64_t mask;                      /* [MASK], -1: there is none */
    uint32_t max_length; /* model_max_length of tokenizer_config.json; 0: not said */
    enum tokenizer_compat compat;
};

/* Reads tokenizer.json or else vocab.txt in a model's folder, and tokenizer_config.json, special_tokens_map.json and
   added_tokens.json if they exist. Null with *e set; unsupported settings are refused by name. */
struct tokenizer *tokenizer_load(const char *folder, enum tokenizer_compat compat,
                                 struct error *e);
/* From memory, for what has no folder: a vocab.txt, uncased or cased. */
struct tokenizer *tokenizer_new(const char *vocabulary, size_t size, bool cased,
                                enum tokenizer_compat compat, struct error *e);
/* The same from the text of a tokenizer.json. */
struct tokenizer *tokenizer_parse(const char *json, size_t size, enum tokenizer_compat compat,
                                  struct error *e);
void tokenizer_destroy(struct tokenizer *t);

/* The id of an added token or a piece; -1: none. */
int64_t tokenizer_find(const struct tokenizer *t, const char *token);

struct token_span {
    uint32_t begin, end; /* bytes of the own part of the text; 0, 0 for [CLS] and [SEP] */
};

/* The tokens of one text or pair; zeroed: empty. Used again, it keeps its memory. */
struct tokens {
    uint32_t *token_ids;
    struct token_span *span;
    uint32_t count, capacity;
    uint32_t first_part; /* tokens of [CLS] A [SEP]: their type is 0, the others' 1 */
    bool cut;            /* max_length cut something off */
    struct words words;  /* memory that is kept */
};
void tokens_finish(struct tokens *t);

struct text_part {
    const char *bytes; /* null: there is no such part */
    uint32_t size;
};

enum { TOKENIZER_MIN_LENGTH = 3, TOKENIZER_MAX_BYTES = 1 << 30 };

/* [CLS] a [SEP] or, where b is there, [CLS] a [SEP] b [SEP]. Where it is longer than max_length (0: no limit,
   else at least TOKENIZER_MIN_LENGTH) the longer part is cut. A part has at most TOKENIZER_MAX_BYTES bytes.
   Any number of threads may use one tokenizer, each with a *ret of its own. */
void tokenizer_encode(const struct tokenizer *t, struct text_part a, struct text_part b,
                      uint32_t max_length, struct tokens *ret);
