/* SPDX-License-Identifier: Apache-2.0 */
/* dK and dV of key heads that several query heads share: the items of the transposed plan leave those of each query
   head; here they are added up in float, in the order of the heads, whoever computed them. */
#ifndef MASKC_CPU_KEY_HEADS_H
#define MASKC_CPU_KEY_HEADS_H
#include "cpu/layout.h"

#if GROUPED
/* Row i of `to` in the sequence's head, from its query heads in `from`. */
static void key_row_sum(const struct sequence *s, const struct abi_tensor *from,
                        const struct abi_tensor *to, u32 i)
{
    float sum[WIDTH] = {0};
    struct sequence each = *s;
    each.h = s->h * s->a->group;
    const float *row = (const float *)from->data + element_at(&each, from, i);
    for (u32 k = 0; k < s->a->group; k++, row += from->head)
        for (u32 d = 0; d < HEAD_DIM; d++)
            sum[d] += row[d];
    row_write(s, to, i, 1, sum);
}

static void key_head_sum(const struct abi_args *a, u32 b, u32 head)
{
    const struct sequence s = sequence_at(a, b, head, ROWS_ARE_KEYS);
    for (u32 i = 0; i < s.rows; i++) {
        key_row_sum(&s, &a->d_k, &a->sum_k, i);
        key_row_sum(&s, &a->d_v, &a->sum_v, i);
    }
}
#endif

#endif
