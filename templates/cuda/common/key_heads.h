/* SPDX-License-Identifier: Apache-2.0 */
/* dK and dV of key heads that several query heads share: the items of the transposed plan leave those of each query
   head, in float; here they are added up in the order of the heads. A block takes ABI_KEY_HEAD_ROWS keys. */
#ifndef MASKC_CUDA_COMMON_KEY_HEADS_H
#define MASKC_CUDA_COMMON_KEY_HEADS_H
#include "cuda/common/four.h"

#if GROUPED
/* Where the sums of one tensor come from and go to; bytes from query head to query head. */
struct key_heads {
    struct view from, to;
    i64 head;
};

DEVICE struct key_heads key_heads_of(const struct abi_args *a, const struct abi_tensor *from,
                                     const struct abi_tensor *to, const struct work_item *work)
{
    struct key_heads k;
    struct work_item first = *work;
    first.h = work->h * a->group;
    k.from = view_of(from, &first);
    k.to = view_of(to, work);
    k.head = from->head * CUDA_FLOAT;
    return k;
}

/* Four positions of a row. */
DEVICE void key_heads_sum(const struct key_heads *k, u32 group, u32 row, u32 d)
{
    const u8 *at = k->from.data + row * k->from.row + d * CUDA_FLOAT;
    struct f4 sum = zero4();
    NO_UNROLL
    for (u32 h = 0; h < group; h++, at += k->head)
        sum = fma4(sum, *(const struct f4 *)at, 1);
    store4(&k->to, row, d, sum);
}

ENTRY(attention_key_heads)(ARGS a)
{
    enum { FOURS = HEAD_DIM / 4 };
    const u32 heads = a.heads / a.group;
    const u32 blocks = (a.keys + ABI_KEY_HEAD_ROWS - 1) / ABI_KEY_HEAD_ROWS;
    NO_UNROLL
    for (u32 at = BLOCK; at < a.slice_batch * heads * blocks; at += BLOCKS) {
        struct work_item work;
        work.b = a.first_batch + at / blocks / heads;
        work.h = at / blocks % heads;
        work_item_sequence(&work, &a, 1);
        const struct key_heads k = key_heads_of(&a, &a.d_k, &a.sum_k, &work);
        const struct key_heads v = key_heads_of(&a, &a.d_v, &a.sum_v, &work);
        const u32 row0 = at % blocks * ABI_KEY_HEAD_ROWS;
        NO_UNROLL
        for (u32 x = THREAD; x < ABI_KEY_HEAD_ROWS * FOURS; x += THREADS) {
            const u32 row = row0 + x / FOURS, d = x % FOURS * 4;
            if (row >= work.exist)
                break;
            key_heads_sum(&k, a.group, row, d);
            key_heads_sum(&v, a.group, row, d);
        }
    }
}
#endif

#endif
