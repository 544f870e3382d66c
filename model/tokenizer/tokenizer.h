/* SPDX-License-Identifier: Apache-2.0 */
/* Text to token ids, each with the bytes it came from: WordPiece, byte-pair encoding or unigram, as the model's folder
   says. Results equal those of HuggingFace's library tokenizers; WordPiece on request those of Google's
   tokenization.py. */
#pragma once
#include "masks/base/error.h"
#include "masks/base/text.h"
#include "model/tokenizer/added.h"
#include "model/tokenizer/base/vocabulary.h"
#include "model/tokenizer/base/words.h"

enum tokenizer_compat { TOKENIZER_HF, TOKENIZER_GOOGLE };

struct tokenizer_kind;
struct bpe;
struct unigram;
struct normalizers;
struct splitters;
struct post;

struct tokenizer {
    const struct tokenizer_kind *kind;
    struct vocabulary vocabulary;
    struct word_rules rules; /* of WordPiece */
    const struct unicode *unicode;
    struct bpe *bpe; /* null but for their kind */
    struct unigram *unigram;
    struct normalizers *normalizers;
    struct splitters *splitters;
    struct post *post; /* special tokens around texts */
    struct added_tokens added;
    uint32_t unknown;    /* [UNK], <unk>; UINT32_MAX: there is none */
    uint32_t begin, end; /* what one text begins and ends with: [CLS] [SEP], <s> </s> */
    uint32_t pad;
    int64_t mask;        /* [MASK], <mask>, -1: there is none */
    uint32_t max_length; /* model_max_length of tokenizer_config.json; 0: not said */
    uint32_t specials;   /* tokens around a pair; a limit of tokens is never less */
    enum tokenizer_compat compat;
};

/* Reads tokenizer.json, or else vocab.txt, sentencepiece.bpe.model, or vocab.json and merges.txt, in a model's folder, and
   tokenizer_config.json, special_tokens_map.json and added_tokens.json if they exist. Null with *e set; unsupported
   settings are refused by name. */
struct tokenizer *tokenizer_load(const char *folder, enum tokenizer_compat compat,
                                 struct error *e);
/* True if the folder has files of a tokenizer. */
bool tokenizer_exists(const char *folder);
/* From memory, for what has no folder: a vocab.txt, uncased or cased. */
struct tokenizer *tokenizer_new(const char *vocabulary, size_t size, bool cased,
                                enum tokenizer_compat compat, struct error *e);
/* The same from the text of a tokenizer.json. */
struct tokenizer *tokenizer_parse(const char *json, size_t size, enum tokenizer_compat compat,
                                  struct error *e);
void tokenizer_destroy(struct tokenizer *t);

/* The id of an added token or a piece; -1: none. */
int64_t tokenizer_find(const struct tokenizer *t, const char *token);
/* "WordPiece", "BPE" or "Unigram". */
const char *tokenizer_kind_name(const struct tokenizer *t);

/* True for a token that goes on with the word of the token before it: of WordPiece one that begins with "##", else one that
   is no added token and does not begin with a blank (U+0120 or U+2581). */
bool tokenizer_follows(const struct tokenizer *t, uint32_t token_id);

/* Appends the text that a piece of BPE or unigram stands for, a blank before a word included. A part of a character is
   U+FFFD. Other pieces and added tokens are appended as they are. */
void tokenizer_piece(const struct tokenizer *t, uint32_t token_id, struct text *ret);

struct token_span {
    uint32_t begin, end; /* bytes of its own part of the text; 0, 0 for [CLS] and [SEP] */
};

struct pipeline_memory;

/* The tokens of one text or pair; zeroed: empty. Used again, it keeps its memory; finish it before the last tokenizer that
   it was used with. */
struct tokens {
    uint32_t *token_ids;
    struct token_span *span;
    uint32_t count, capacity;
    uint32_t
        first_part; /* so many tokens have type 0, the others 1: those before B with BERT, all with RoBERTa */
    uint32_t head;      /* special tokens before A */
    uint32_t middle;    /* special tokens between A and B */
    uint32_t second;    /* the first token of B; without B that of the closing ones */
    uint32_t tail;      /* special tokens behind the last part */
    bool cut;           /* max_length cut something off */
    struct words words; /* memory that is kept */
    struct pipeline_memory *memory;
};
void tokens_finish(struct tokens *t);

struct text_part {
    const char *bytes; /* null: there is no such part */
    uint32_t size;
};

enum { TOKENIZER_MIN_LENGTH = 3, TOKENIZER_MAX_BYTES = 1 << 30 };

/* a, or a and b where b is there, with the special tokens of the model around them: [CLS] a [SEP] b [SEP]. Where it is
   longer than max_length (0: no limit, else at least TOKENIZER_MIN_LENGTH) the longer part is cut; the special tokens all
   stay. A part has at most TOKENIZER_MAX_BYTES bytes. Any number of threads may use one tokenizer, each with a *ret of its
   own. */
void tokenizer_encode(const struct tokenizer *t, struct text_part a, struct text_part b,
                      uint32_t max_length, struct tokens *ret);
