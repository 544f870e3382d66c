/* SPDX-License-Identifier: Apache-2.0 */
/* Covering arrays: rows, each a value for every factor, so that each pair of values of two factors
   stands in some row. Drawn greedily; a seed means the same rows on every machine. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { PAIRS_FACTORS = 16, PAIRS_VALUES = 16 };

struct pairs_row {
    uint32_t value[PAIRS_FACTORS];
};

struct pairs {
    uint32_t factors, values[PAIRS_FACTORS]; /* how many of each factor; at most PAIRS_VALUES */
    uint64_t random;                         /* the seed, and what became of it */
    bool (*allows)(const struct pairs_row *r); /* rows that make sense; null: all */
    bool seen[PAIRS_FACTORS][PAIRS_VALUES][PAIRS_FACTORS][PAIRS_VALUES];
};

/* A number below `below`, 1 or more. */
uint32_t pairs_draw(struct pairs *p, uint32_t below);
/* A row by chance that has the pair (a, u), (b, v); false where a thousand draws found none that is
   allowed. */
bool pairs_row_with(struct pairs *p, uint32_t a, uint32_t u, uint32_t b, uint32_t v,
                    struct pairs_row *ret);
/* The next row: of some allowed rows with the first unseen pair, the one with the most unseen
   pairs. Its pairs count as seen from now on. Pairs for which no allowed row is found are skipped.
   False if no other pair is left. */
bool pairs_next(struct pairs *p, struct pairs_row *ret);
/* A row that the caller wants in any case: its pairs are seen from now on. */
void pairs_take(struct pairs *p, const struct pairs_row *r);
/* Other values of the factors `turn` (bits) in the row: of some the one with most unseen pairs, all of which are seen
   from now on. False where none of them has any. For factors that cost nothing beside the others of a row. */
bool pairs_turn(struct pairs *p, uint32_t turn, struct pairs_row *row);
/* Pairs that were seen, and all that there would be if every row were allowed. */
uint32_t pairs_seen(const struct pairs *p);
uint32_t pairs_of(const struct pairs *p);
/* Rows of the full product, and one of them: the last factors turn fastest. */
uint64_t pairs_product(const struct pairs *p);
struct pairs_row pairs_at(const struct pairs *p, uint64_t number);
