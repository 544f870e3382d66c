/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of Replace and Split: a text, or one of the few regular expressions that tokenizers of encoders use. */
#pragma once
#include "masks/base/error.h"
#include "model/tokenizer/base/aligned.h"
#include <jansson.h>

enum expression_kind {
    EXPRESSION_TEXT,
    EXPRESSION_REPEATED, /* a character or \s, at least so many times: " {2,}", "\s+" */
    EXPRESSION_GPT2,     /* the words of GPT-2 */
};

struct expression {
    enum expression_kind kind;
    char *text; /* of EXPRESSION_TEXT */
    uint32_t size;
    uint32_t point, least; /* of EXPRESSION_REPEATED; point 0: any blank */
};

/* {"String": ..} or {"Regex": ..}; another regular expression is refused. */
int expression_read(struct expression *ret, const json_t *object, struct error *e);
void expression_finish(struct expression *p);

/* The first match in bytes[at, size). False: there is none. */
bool expression_next(const struct expression *p, const char *bytes, uint32_t at, uint32_t size,
                     struct span *ret);

/* The end of GPT-2's word at bytes[at], at < size:
   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
uint32_t gpt2_word(const char *bytes, uint32_t at, uint32_t size);
