/* SPDX-License-Identifier: Apache-2.0 */
/* A WordPiece vocabulary from text: the most frequent pair of neighbouring pieces is joined, again and again,
   until there are enough tokens. */
#pragma once
#include "masks/base/error.h"
#include "masks/base/text.h"
#include "model/tokenizer/base/words.h"

struct vocabulary_trainer_options {
    uint32_t size;           /* number of all tokens */
    uint32_t min_frequency;  /* pairs less frequent than this are not joined */
    uint32_t alphabet_limit; /* characters that are kept; words with a rarer one are skipped */
    bool cased;
};

struct vocabulary_trainer;
struct vocabulary_trainer *vocabulary_trainer_new(const struct vocabulary_trainer_options *o);
void vocabulary_trainer_destroy(struct vocabulary_trainer *t);

/* Counts the words of a line of less than 2^30 bytes. */
void vocabulary_trainer_add(struct vocabulary_trainer *t, const char *text, uint32_t size);

/* Appends vocab.txt: [PAD] [UNK] [CLS] [SEP] [MASK], the characters by code point, those that continue
   a word, then the joined pieces in the order in which they were joined. The same lines in any order give
   the same bytes. Fails if the size leaves no room for all of them but the joined pieces. */
int vocabulary_trainer_finish(struct vocabulary_trainer *t, struct text *out, struct error *e);
