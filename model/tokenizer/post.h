/* SPDX-License-Identifier: Apache-2.0 */
/* The post-processor of tokenizer.json: the special tokens around one text and a pair, their types, and whether blanks at
   the ends of a token belong to its offsets. */
#pragma once
#include "masks/base/error.h"
#include "model/tokenizer/base/aligned.h"
#include <jansson.h>

/* Special tokens around one text or a pair: SPECIAL .. A SPECIAL .. B SPECIAL ... One text has none in the middle. */
struct layout {
    uint32_t *token_id; /* before A, in the middle, behind the last part */
    uint32_t before, middle, after;
    uint32_t specials; /* number of them with type 0 */
    bool a_zero,
        b_zero; /* the part's tokens have type 0; what follows the first token of type 1 has type 1 */
};

struct post {
    bool given; /* layouts come from token ids of the file; else from the names of the roles */
    struct layout single, pair;
    bool trims,
        prefix; /* trim_offsets and add_prefix_space of ByteLevel and RobertaProcessing */
};

void post_finish(struct post *p);
/* Another post-processor or template than these is refused. */
int post_read(struct post *ret, const json_t *json, struct error *e);
/* [begin] A [end] and [begin] A [end] B [end], where types 1 begin with B, or all types are 0 and [end] is twice in the
   middle as RoBERTa has it. */
void post_build(struct post *ret, uint32_t begin, uint32_t end, bool roberta);
/* The largest token id. */
uint32_t post_largest(const struct post *p);

/* Blanks at the ends of a token, in characters. */
struct blanks {
    uint32_t before, after;
};

/* Blanks of GPT-2's alphabet and others. */
struct blanks post_blanks(const char *bytes, uint32_t size);
/* The token's offsets without its blanks. first: it is the first token of its text. */
struct span post_trim(const struct post *p, const char *text, struct span token,
                      struct blanks blanks, bool first);
