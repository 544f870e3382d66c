/* SPDX-License-Identifier: Apache-2.0 */
/* A cover in words: the shortest terms of the mask language that state its lines and shapes. A
   term may say more than the cover needs (a whole stride where the cover has dropped its last
   offset) as long as the pattern holds it. */
#pragma once
#include "masks/analysis/cover.h"
#include "masks/base/text.h"

enum {
    PHRASE_MAX_BYTES = 1 << 18, /* of one statement; beyond, a mask is better kept as data */
    PHRASE_SHOWN = 24,          /* numbers of a list in a term's `structure` */
};

struct phrase {
    struct term *terms;
    size_t n_terms, capacity;
    size_t bytes; /* of the terms' text */
    uint32_t stride, summary_block, summary;
};

/* `full` holds all full lines of the pattern, `need` those of the cover. */
void phrase_offsets(struct phrase *p, const struct lines *need, const struct lines *full);
void phrase_axes(struct phrase *p, const struct lines *need, const struct lines *full);
/* `alone`: the cover has no lines. */
void phrase_shapes(struct phrase *p, const struct shapes *s, bool alone, uint32_t n);

/* States what is left as `(rows(..)&columns(..))`, one term for the rows that have the same keys
   left. False, and nothing is added, where that takes too many terms. */
bool phrase_leftovers(struct phrase *p, const struct leftovers *l, uint32_t n);

/* One term; `structure` is what `show` says. Both are taken over. */
void phrase_add(struct phrase *p, char *text, char *structure);
void phrase_finish(struct phrase *p);

/* Numbers first + k for each set flag[k]: "0,1,2,8..11"; no run begins after `most` numbers:
   ",... (9 in all)". `end` n > 0: a single n - 1 is written as -1. */
struct numbers {
    const uint8_t *flag;
    uint32_t count;
    int64_t first;
    uint32_t end;
};
void numbers_add(struct text *out, struct numbers l, uint32_t most);
uint32_t numbers_count(struct numbers l);
