/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of batches are rounded up to few, so that batches share recordings. The rows that are added are sequences of their own.
   No target reads them, so their gradients are zero and add nothing to any sum; lists of rows by word have none of them. Rows
   that are added to a target have no loss and no gradient. */
#include "model/backend/gpu/train/train.h"

/* Up to the next multiple of `least` and of a sixteenth of the power of two below x: at most 1/16 more. */
static uint32_t round_up(uint32_t x, uint32_t least)
{
    uint32_t step = least;
    while (32 * (uint64_t)step <= x)
        step *= 2;
    return (x + step - 1) / step * step;
}

enum { ROWS = 16 }; /* of a tile of the matrix unit */

/* Sequences that rows need. */
static uint32_t sequences_of(uint32_t rows, uint32_t longest)
{
    return longest ? (rows + longest - 1) / longest : 0;
}

struct gradients_sizes gpu_train_padded(const struct engine *g, const struct gradients_sizes *s)
{
    struct gradients_sizes ret = *s;
    const uint32_t longest = round_up(s->longest, ROWS);
    ret.tokens = round_up(s->tokens, ROWS);
    ret.longest = longest < g->longest ? longest : g->longest;
    ret.sequences =
        round_up(s->sequences + sequences_of(ret.tokens - s->tokens, ret.longest), 1);
    ret.words = round_up(s->words, ROWS);
    ret.labels = round_up(s->labels, 1);
    ret.pooled = round_up(s->pooled, 1);
    return ret;
}

uint32_t gpu_train_target_rows(const struct train_target *t)
{
    return round_up(t->count, t->head == TARGET_WORDS ? ROWS : 1);
}

/* The last ones are empty. */
void gpu_train_padded_offsets(const struct gradients_sizes *padded, const struct train_batch *b,
                              int32_t *ret)
{
    for (uint32_t k = 0; k <= padded->sequences; k++) {
        const uint32_t added = k > b->sequences ? k - b->sequences : 0;
        const uint64_t end = b->tokens + (uint64_t)added * padded->longest;
        ret[k] = k <= b->sequences      ? b->offsets[k]
                 : end < padded->tokens ? (int32_t)end
                                        : (int32_t)padded->tokens;
    }
}
