/* SPDX-License-Identifier: Apache-2.0 */
/* Resident family, forward: what is copied to shared memory, when, and which warps wait. K of the next head is copied
   while the last warp tiles of this one multiply by V. */
#ifndef MASKC_CUDA_RESIDENT_FORWARD_COPIES_H
#define MASKC_CUDA_RESIDENT_FORWARD_COPIES_H
#include "cuda/resident/softmax.h"

/* Operands in shared memory; the last one with RESIDENT_Q_COPIED. */
enum { RESIDENT_VALUES, RESIDENT_KEYS, RESIDENT_QUERIES };
enum { RESIDENT_FORWARD_HEAD = (2 + RESIDENT_Q_COPIED) * RESIDENT_OPERAND }; /* halves */

typedef char resident_forward_fits
    [2 * RESIDENT_FORWARD_HEAD ==
                 RESIDENT_FORWARD_BYTES(RESIDENT_ROWS, HEAD_DIM, RESIDENT_Q_COPIED) &&
             RESIDENT_FORWARD_SHARED >= RESIDENT_FORWARD_HEADS * 2 * RESIDENT_FORWARD_HEAD
         ? 1
         : -1];

/* The warp tiles that a warp group takes together: rows from `first` on. `next`: the next head of the warp group. */
struct resident_round {
    const struct abi_args *a;
    u32 first, next;
};

enum {
    RESIDENT_STRIDE = 16 * RESIDENT_FORWARD_WARPS, /* rows of a round */
    RESIDENT_LAST = (RESIDENT_ROWS - 1) / RESIDENT_STRIDE * RESIDENT_STRIDE,
};

DEVICE struct resident_head resident_forward_head(const struct abi_args *a, u32 at)
{
    return resident_head_at(a, at, RESIDENT_FORWARD_HEADS, RESIDENT_FORWARD_WARPS,
                            RESIDENT_FORWARD_HEAD);
}

/* Starts the copies of K, and of Q where it is copied. */
DEVICE void resident_fetch_keys(const struct abi_args *a, const struct resident_head *head)
{
    const struct abi_tensor *const keys[] = {&a->k, &a->q};
    resident_fetch(RESIDENT_KEYS, 1 + RESIDENT_Q_COPIED, keys, head, RESIDENT_FORWARD_WARPS);
    copy_async_commit();
}

DEVICE void resident_fetch_values(const struct abi_args *a, const struct resident_head *head)
{
    const struct abi_tensor *const values[] = {&a->v};
    resident_fetch(RESIDENT_VALUES, 1, values, head, RESIDENT_FORWARD_WARPS);
    copy_async_commit();
}

/* K of the head, before its first scores; V where the loop over chunks has no place for a barrier. */
DEVICE void resident_wait_for_k(struct resident_round round)
{
    if (RESIDENT_ALL && round.first)
        return;
    COPY_ASYNC_WAIT(RESIDENT_ALL ? 1 : 0); /* V may still be on its way */
    SYNC();
}

/* After the head's last scores: copies of the next head's K, under the arithmetic of this one. */
DEVICE void resident_next_keys(struct resident_round round)
{
    if (round.first != RESIDENT_LAST)
        return;
    SYNC(); /* K and Q are no longer read */
    const struct resident_head head = resident_forward_head(round.a, round.next);
    resident_fetch_keys(round.a, &head);
}

DEVICE void resident_wait_for_v(struct resident_round round)
{
    if (round.first)
        return;
    COPY_ASYNC_WAIT(RESIDENT_LAST ? 0 : 1); /* K of the next head may still be on its way */
    SYNC();
}

#endif
