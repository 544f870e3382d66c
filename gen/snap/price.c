/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates go to the planner's own row pricer. Entries that its kernels compute anyway are switched on: they cost
   nothing, and a full tile takes no mask test. */
#include "gen/snap/internal.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

static void add(const struct pricer *x, const struct block *b, const uint64_t *words,
                struct points *ret)
{
    struct pattern *p = cells_pattern(b, words);
    struct point *to = MEMORY_PUSH(ret->point, ret->count, ret->capacity);
    *to =
        (struct point){row_pricer_price(x->row, p, b->row0, x->training), cells_value(b, words),
                       memory_copy(words, block_words(b) * sizeof *words)};
    pattern_destroy(p);
}

static bool is_known(const struct points *p, const struct block *b, const uint64_t *words)
{
    for (uint32_t k = 0; k < p->count; k++)
        if (!memcmp(p->point[k].words, words, block_words(b) * sizeof *words))
            return true;
    return false;
}

void price_add_points(const struct pricer *x, const struct block *b, const uint64_t *words,
                      struct points *ret)
{
    size_t bytes = block_words(b) * sizeof *words;
    uint64_t *more = memory_copy(words, bytes);
    if (x->keep_rows)
        cells_keep_rows(b, more);
    for (int fill = 0; fill < 2 && !is_known(ret, b, more); fill++) {
        add(x, b, more, ret);
        row_pricer_executed(x->row, more);
    }
    free(more);
}
