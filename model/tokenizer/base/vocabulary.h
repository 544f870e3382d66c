/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens and their ids: the lines of vocab.txt, counted from 0, or what tokenizer.json lists. */
#pragma once
#include "masks/base/error.h"
#include "model/tokenizer/base/trie.h"
#include <stddef.h>

enum { VOCABULARY_MAX_TOKENS = 1 << 22 };

struct vocabulary {
    char **token; /* by token id; null in a gap */
    uint32_t count, capacity;
    uint32_t pieces;    /* different tokens among those that were indexed */
    struct trie begin;  /* what may begin a word */
    struct trie follow; /* what may follow: tokens without their "##" */
};

/* A token is UTF-8. Of two equal tokens the later one wins, as in every other reader. */
int vocabulary_add(struct vocabulary *v, const char *token, size_t size, uint64_t token_id,
                   struct error *e);

/* One token a line; blanks at its end are cut. Fails with the line's number where it is not UTF-8. */
int vocabulary_parse(struct vocabulary *ret, const char *bytes, size_t size, const char *path,
                     struct error *e);

/* Fills the tries with the tokens so far; those that are added later are no pieces. `prefix` is "##"; null: no piece
   follows another one, and `follow` stays empty. */
int vocabulary_index(struct vocabulary *v, const char *prefix, struct error *e);
int64_t vocabulary_find(const struct vocabulary *v,
                        const char *token); /* a piece; -1: not there */
int64_t vocabulary_find_part(const struct vocabulary *v, const char *token, uint32_t size);
void vocabulary_finish(struct vocabulary *v);
