/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gradients/batch.h"

/* The first of masked_row that is not below `row`. */
static uint32_t find_row(const struct train_batch *b, uint32_t row)
{
    uint32_t low = 0, high = b->masked;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (b->masked_row[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void train_batch_slice(const struct train_batch *b, uint32_t first, uint32_t count,
                       struct train_batch *ret, int32_t *ret_offsets, uint32_t *ret_rows)
{
    int32_t begin = b->offsets[first];
    uint32_t from = find_row(b, (uint32_t)begin);
    uint32_t to = find_row(b, (uint32_t)b->offsets[first + count]);
    for (uint32_t k = 0; k <= count; k++)
        ret_offsets[k] = b->offsets[first + k] - begin;
    for (uint32_t k = from; k < to; k++)
        ret_rows[k - from] = b->masked_row[k] - (uint32_t)begin;
    *ret = (struct train_batch){.sequences = count,
                                .tokens = (uint32_t)ret_offsets[count],
                                .list = b->list + first,
                                .offsets = ret_offsets,
                                .sample = b->sample + first,
                                .masked = to - from,
                                .masked_row = ret_rows,
                                .masked_label = b->masked_label + from,
                                .next_label = b->next_label ? b->next_label + first : NULL};
}
