/* SPDX-License-Identifier: Apache-2.0 */
#include "model/data/batch.h"

void train_batch_slice(const struct train_batch *b, uint32_t first, uint32_t count,
                       struct train_batch *ret, int32_t *ret_offsets, uint32_t *ret_rows)
{
    const uint32_t begin = (uint32_t)b->offsets[first],
                   end = (uint32_t)b->offsets[first + count];
    uint32_t from = 0, to;
    while (from < b->masked && b->masked_row[from] < begin)
        from++;
    for (to = from; to < b->masked && b->masked_row[to] < end; to++)
        ret_rows[to - from] = b->masked_row[to] - begin;
    for (uint32_t k = 0; k <= count; k++)
        ret_offsets[k] = b->offsets[first + k] - (int32_t)begin;
    *ret = (struct train_batch){
        .sequences = count,
        .tokens = end - begin,
        .list = b->list + first,
        .offsets = ret_offsets,
        .sample = b->sample + first,
        .masked = to - from,
        .masked_row = ret_rows,
        .masked_label = b->masked_label + from,
        .next_label = b->next_label ? b->next_label + first : NULL,
    };
}
