/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/tables/pattern_index.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static uint64_t find_slot(const struct plan_pass *t, const struct pattern_index *index,
                          const u32 *words, uint32_t block_rows)
{
    size_t bytes = block_rows * sizeof *words;
    uint64_t at = XXH3_64bits(words, bytes) & (index->capacity - 1);
    while (index->slot[at] &&
           memcmp(t->patterns + (size_t)(index->slot[at] - 1) * block_rows, words, bytes))
        at = (at + 1) & (index->capacity - 1);
    return at;
}

static void grow_index(const struct plan_pass *t, struct pattern_index *index,
                       uint32_t block_rows)
{
    if (!index->capacity)
        index->capacity = 256;
    while (2 * (t->n_patterns + 1) > index->capacity)
        index->capacity *= 2;
    free(index->slot);
    index->slot = memory_new(index->capacity, sizeof *index->slot);
    for (uint64_t k = 0; k < t->n_patterns; k++)
        index->slot[find_slot(t, index, t->patterns + k * block_rows, block_rows)] =
            (u32)(k + 1);
}

u32 pattern_intern(struct plan_pass *t, struct pattern_index *index, const u32 *words,
                   uint32_t block_rows)
{
    if (2 * (t->n_patterns + 1) > index->capacity)
        grow_index(t, index, block_rows);
    uint64_t at = find_slot(t, index, words, block_rows);
    if (index->slot[at])
        return index->slot[at];
    if (t->n_patterns == t->patterns_capacity) {
        t->patterns_capacity = t->patterns_capacity ? 2 * t->patterns_capacity : 16;
        t->patterns =
            memory_resize(t->patterns, t->patterns_capacity, block_rows * sizeof *words);
    }
    memcpy(t->patterns + t->n_patterns * block_rows, words, block_rows * sizeof *words);
    return index->slot[at] = (u32)++t->n_patterns;
}
