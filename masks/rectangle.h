/* SPDX-License-Identifier: Apache-2.0 */
/* Masks with another number of keys than of queries: cross-attention, a causal chunk against its prefix. They are held
   in the square of the larger number, whose other rows or columns are empty: all that takes masks takes them too. */
#pragma once
#include "masks/mask.h"

/* Where the shorter side stands in the square: at its first rows (columns), or at its last ones. At the end query i
   stands at i + keys - queries, as the causal mask of a chunk against its prefix has it. */
enum mask_align { MASK_ALIGN_START, MASK_ALIGN_END };

/* A new mask from a square one, whose length must be the larger number: entry (i, j) is that of the square at the
   places where query i and key j stand. Null with *e set. */
struct mask *mask_rectangle(const struct mask *m, uint32_t queries, uint32_t keys,
                            enum mask_align align, struct error *e);

/* True if all entries are within the first `queries` queries and `keys` keys. */
bool mask_within(const struct mask *m, uint32_t queries, uint32_t keys);
