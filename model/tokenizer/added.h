/* SPDX-License-Identifier: Apache-2.0 */
/* Added tokens such as "[MASK]": found in the text before it is cut into words, as in the Rust library tokenizers. An
   added token outside the model's vocabulary is never produced by WordPiece splitting. */
#pragma once
#include "model/tokenizer/base/unicode.h"
#include "model/tokenizer/base/vocabulary.h"
#include <stdbool.h>

struct added_flags {
    bool single_word;           /* no letter, digit or underscore next to it */
    bool eats_left, eats_right; /* the blanks next to it belong to it */
    bool normalized;            /* found in the normalised text, by its own normalised text */
};

struct added_token {
    char *text;
    uint32_t token_id;
    struct added_flags flags;
};

/* Zeroed: empty. */
struct added_tokens {
    struct added_token *token;
    uint32_t count, capacity;
    struct trie pattern[2]; /* of raw and of normalised texts; the values count tokens */
    bool begins[2][256];    /* the first bytes of these patterns */
    uint32_t n_begins[2];   /* how many they are */
    uint8_t a_begin[2];     /* one of them */
    bool has_normalized;
};

/* Adds a token, or replaces the flags of one that is there. The vocabulary gives its id, or it gets the next free one.
   Fails if `given` is neither -1 nor that id. */
int added_add(struct added_tokens *a, struct vocabulary *v, const char *text, int64_t given,
              struct added_flags flags, struct error *e);
const struct added_token *added_find(const struct added_tokens *a,
                                     const char *text); /* or null */

/* Builds the patterns; call it after the last token. `normalise` returns the normalised text of a token, which is freed.
   Fails if two patterns are equal: the Rust library picks one of them at random. */
int added_index(struct added_tokens *a,
                char *(*normalise)(const void *context, const char *text, uint32_t *ret_size),
                const void *context, struct error *e);
void added_finish(struct added_tokens *a);

struct added_search {
    const struct unicode *unicode;
    const char *text; /* raw or normalised */
    uint32_t size;
    bool normalized;
    uint32_t done, next; /* blanks before `done` are not eaten; the search goes on at `next` */
    /* The match that added_next() found. */
    const struct added_token *token;
    uint32_t begin,
        end; /* with the blanks that it eats; equal if the match before it has them all */
};

/* Finds the next match from s->next on. False: there is none. */
bool added_next(const struct added_tokens *a, struct added_search *s);
