/* SPDX-License-Identifier: Apache-2.0 */
/* The pre-tokenizers of tokenizer.json: each cuts the pieces of the one before it. */
#pragma once
#include "masks/base/error.h"
#include "model/tokenizer/base/aligned.h"
#include "model/tokenizer/normalize/expression.h"
#include <jansson.h>

enum splitter_kind {
    SPLITTER_BLANKS,     /* WhitespaceSplit */
    SPLITTER_WORDS,      /* Whitespace: \w+|[^\w\s]+ */
    SPLITTER_METASPACE,  /* blanks become U+2581, which begins a piece */
    SPLITTER_EXPRESSION, /* Split */
    SPLITTER_BYTE_LEVEL, /* ByteLevel */
};

enum split_behavior { SPLIT_REMOVED, SPLIT_ISOLATED, SPLIT_PREVIOUS, SPLIT_NEXT, SPLIT_JOINED };

enum prepend_scheme { PREPEND_ALWAYS, PREPEND_FIRST, PREPEND_NEVER };

struct splitter {
    enum splitter_kind kind;
    struct expression expression; /* of SPLITTER_EXPRESSION */
    enum split_behavior behavior;
    bool invert;
    char mark[5]; /* of SPLITTER_METASPACE, UTF-8 */
    enum prepend_scheme prepend;
    bool cuts; /* SPLITTER_METASPACE: at the mark; SPLITTER_BYTE_LEVEL: GPT-2's words */
};

struct splitters { /* zeroed: none */
    struct splitter *list;
    uint32_t count, capacity;
    bool byte_level; /* the last one is ByteLevel */
    bool mapped;     /* its bytes become characters; else the model takes them as they are */
};

/* Null or a pre-tokenizer, which may be a Sequence. Another one is refused by name. */
int splitters_read(struct splitters *ret, const json_t *json, struct error *e);
/* ByteLevel's add_prefix_space, where there is one. */
void splitters_prefix(struct splitters *s, bool add_prefix_space);
void splitters_finish(struct splitters *s);

struct pieces { /* zeroed: empty */
    struct span *list;
    uint32_t count, capacity;
};

/* Memory that is kept from call to call; zeroed before the first. */
struct splitting {
    const struct aligned *text; /* what the pieces are of */
    struct pieces pieces, next;
    struct aligned buffer[2];
};

void splitting_finish(struct splitting *m);
/* The pieces of text->bytes[from, to), none of them empty: m->pieces of m->text. */
void splitters_run(const struct splitters *s, const struct aligned *text, struct span part,
                   struct splitting *m);

/* The character of GPT-2's alphabet that stands for a byte, in UTF-8; its size. */
uint32_t byte_character(uint8_t byte, char ret[4]);
