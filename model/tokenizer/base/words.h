/* SPDX-License-Identifier: Apache-2.0 */
/* From text to normalised words in one pass: cleaning, spaces around ideographs, decomposition and
   removal of accents, lower case, then words at whitespace and around punctuation. Every byte of a
   word knows the source bytes it came from, as HuggingFace's alignments do. */
#pragma once
#include "model/tokenizer/base/unicode.h"
#include <stdbool.h>
#include <stddef.h>

struct word_rules {
    bool clean, ideographs, strip_accents, lowercase;
    bool google;        /* lower case first, then accents; final sigma */
    uint32_t max_chars; /* of longer words only the ends are known */
};

struct word {
    const char *bytes;           /* UTF-8; empty where chars > max_chars */
    const uint32_t *begin, *end; /* of each byte, in the source */
    uint32_t size, chars;
    uint32_t first, last; /* source bytes of the whole word */
};

struct word_splitter {
    const struct unicode *unicode;
    const struct word_rules *rules;
    void (*sink)(void *context, const struct word *w); /* receives each word */
    void *context;
};

/* Memory that is kept from call to call; one for each thread, zeroed before the first. */
struct words {
    char *bytes;           /* the word, or the normalised text */
    uint32_t *begin, *end; /* of each byte, in the source */
    uint32_t size, capacity, chars, last;
    struct held *held;   /* combining points that wait for their order */
    struct span *source; /* and what they came from */
    uint32_t n_held, held_capacity, n_source, source_capacity;
};

void words_finish(struct words *w);

/* Cuts text[from, to) (less than 2^32 bytes; offsets count from text). */
void words_split(struct words *w, const struct word_splitter *s, const char *text,
                 uint32_t from, uint32_t to);

/* The same in two steps. The first one fills w->bytes[0, w->size) with the normalised text, blanks included; the second
   one cuts a part of it. */
void words_normalise(struct words *w, const struct word_splitter *s, const char *text,
                     uint32_t from, uint32_t to);
void words_cut(const struct words *w, const struct word_splitter *s, uint32_t from,
               uint32_t to);
