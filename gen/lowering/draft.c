/* SPDX-License-Identifier: Apache-2.0 */
#include "gen/lowering/lowering.h"
#include "masks/base/memory.h"
#include <assert.h>
#include <stdlib.h>

void draft_clear(struct draft *d)
{
    d->cost = 0;
    d->pieces = 0;
    d->n_ranges = d->n_tiles = d->n_lines = d->n_words = 0;
    d->n_gathers = d->n_columns = 0;
    d->n_kept = 0;
}

void draft_finish(struct draft *d)
{
    free(d->ranges);
    free(d->tiles);
    free(d->lines);
    free(d->gathers);
    free(d->columns);
    free(d->words);
}

u32 *draft_pattern(struct draft *d, uint32_t block_rows)
{
    if (d->n_words + block_rows > d->words_capacity) {
        d->words_capacity = 2 * d->words_capacity + 16 * block_rows;
        d->words = memory_resize(d->words, d->words_capacity, sizeof *d->words);
    }
    d->n_words += block_rows;
    return d->words + d->n_words - block_rows;
}

void draft_piece(struct draft *d, enum abi_piece_kind kind, uint64_t first, uint64_t count,
                 uint64_t cols)
{
    assert(d->pieces < ABI_KINDS); /* lowerings of one kind would share a piece */
    d->piece[d->pieces++] =
        (struct abi_piece){kind, (uint32_t)first, (uint32_t)count, (uint32_t)cols};
}
