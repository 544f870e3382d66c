/* SPDX-License-Identifier: Apache-2.0 */
/* Which tokens of a sample are masked: max(1, round(probability * length)) of those that are not [CLS] or [SEP], drawn
   anew in each epoch, a function of (seed, epoch, sample). Of these 80 % become [MASK], 10 % stay, 10 % become a token
   from the whole vocabulary. With whole words a "##" piece goes with its word, and a word that would be too many is
   left out, as in Google's code. Where a part begins within a word, the rest of that word is one by itself (Google's code
   joins it to the last word of the part before). */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct masking {
    double probability;
    bool whole_words;
    uint32_t begin, end, mask, vocabulary; /* [CLS], [SEP], [MASK]; how many tokens there are */
    const uint8_t *follows;                /* bit t: token t follows in a word */
};

/* Zeroed: empty; used again, it keeps its memory. */
struct masking_memory {
    uint32_t *candidate, *chosen;
    uint32_t capacity;
};
void masking_finish(struct masking_memory *m);

struct masking_key {
    uint64_t seed;
    uint32_t epoch, sample;
};

/* Tokens to mask, one call a sample. */
struct masking_target {
    uint32_t *token; /* [count]: masked in place */
    uint32_t count;
    uint32_t *place,
        *label; /* [count] each: the places that were masked, ascending, and what stood there */
};

/* Returns how many tokens were masked. */
uint32_t masking_apply(const struct masking *m, struct masking_key key,
                       struct masking_memory *memory, struct masking_target t);
