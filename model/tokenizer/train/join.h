/* SPDX-License-Identifier: Apache-2.0 */
/* The joining step of WordPiece training: again and again the most frequent pair of neighbouring symbols
   becomes a symbol. */
#pragma once
#include "model/tokenizer/train/counts.h"

/* A word as symbols; it grows shorter as they are joined. */
struct spelling {
    uint32_t *symbol;
    uint32_t length;
    uint64_t count; /* how often the text has the word */
};

/* Adds symbols until there are `size`, or no pair is as frequent as min_frequency. Among pairs of the same
   count the one of earlier symbols comes first. A symbol that does not begin a word begins with "##". */
void join_pairs(struct counts *symbols, struct spelling *spelling, uint32_t n_spellings,
                uint32_t size, uint32_t min_frequency);
