/* SPDX-License-Identifier: Apache-2.0 */
/* The joining of WordPiece training: the pair of neighbouring symbols that is most frequent becomes a
   symbol of its own, again and again. */
#pragma once
#include "model/tokenizer/counts.h"

/* A word as symbols; it grows shorter as they are joined. */
struct spelling {
    uint32_t *symbol;
    uint32_t length;
    uint64_t count; /* how often the text has the word */
};

/* Adds symbols until there are `size` or no pair is as frequent as min_frequency. Among pairs of the
   same count, those of earlier symbols are first. A symbol that is not first in a word begins with
   "##". */
void join_pairs(struct counts *symbols, struct spelling *spelling, uint32_t n_spellings,
                uint32_t size, uint32_t min_frequency);
