/* SPDX-License-Identifier: Apache-2.0 */
/* 16 rows of the caller's tensors: read as fragments; sums written 16 bytes a lane, after the lanes of a quad have
   exchanged parts. */
#ifndef MASKC_CUDA_RESIDENT_STORE_H
#define MASKC_CUDA_RESIDENT_STORE_H
#include "cuda/resident/head.h"

struct ALIGNED_16 resident_u4 {
    u32 x[4];
};

DEVICE u32 resident_pair_of(const u8 *row, u32 d, u32 there)
{
    return there && d < HEAD_DIM ? *(const u32 *)(row + 2 * d) : 0;
}

/* Rows row0 .. row0 + 15 as the first operand of `count` products along the head from a step on. */
DEVICE void resident_rows_of(struct frag_a *rows, u32 step, u32 count,
                             const struct abi_tensor *t, const struct resident_head *head,
                             u32 row0)
{
    u32 row = row0 + resident_row(), low = row < head->length, high = row + 8 < head->length;
    const u8 *at = resident_data(t, head) + (i64)row * t->row * 2, *below = at + 8 * t->row * 2;
    UNROLL
    for (u32 s = 0; s < count; s++) {
        u32 d = 16 * (step + s) + 2 * quad_lane();
        rows[s].x[0] = resident_pair_of(at, d, low);
        rows[s].x[1] = resident_pair_of(below, d, high);
        rows[s].x[2] = resident_pair_of(at, d + 8, low);
        rows[s].x[3] = resident_pair_of(below, d + 8, high);
    }
}

/* x[k] of lane t goes to x[t] of lane k, within the four lanes of a row. */
DEVICE void resident_transpose(u32 x[4])
{
    u32 odd = THREAD & 1, upper = THREAD & 2;
    UNROLL
    for (u32 k = 0; k < 4; k += 2) {
        u32 got = bits_of(SHUFFLE_XOR(float_of(odd ? x[k] : x[k + 1]), 1));
        x[k] = odd ? got : x[k];
        x[k + 1] = odd ? x[k + 1] : got;
    }
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        u32 got = bits_of(SHUFFLE_XOR(float_of(upper ? x[k] : x[k + 2]), 2));
        x[k] = upper ? got : x[k];
        x[k + 2] = upper ? x[k + 2] : got;
    }
}

/* The lane's row (high: the one 8 below) of sums, times `by`; `sums` are of `chunks` chunks from `first`. */
DEVICE void resident_store_row(const struct frag_c sums[RESIDENT_CHUNKS], u32 first, u32 chunks,
                               u32 high, float by, u8 *row, u32 there)
{
    UNROLL
    for (u32 chunk = 0; chunk < chunks; chunk += 4) {
        struct resident_u4 v;
        UNROLL
        for (u32 k = 0; k < 4; k++) {
            const struct frag_c *c = &sums[chunk + k < chunks ? chunk + k : 0];
            v.x[k] = half_pack(c->x[2 * high] * by, c->x[2 * high + 1] * by);
        }
        resident_transpose(v.x);
        u32 d = 8 * (first + chunk + quad_lane());
        if (there && d < HEAD_DIM)
            *(struct resident_u4 *)(row + 2 * d) = v;
    }
}

/* Writes such chunks of rows row0 .. row0 + 15 as far as they exist. */
DEVICE void resident_store_part(const struct frag_c sums[RESIDENT_CHUNKS], u32 first,
                                u32 chunks, const float by[2], const struct abi_tensor *t,
                                const struct resident_head *head, u32 row0)
{
    u32 row = opt_barrier(row0) + resident_row(); /* computed here, not before the loop */
    u8 *at = resident_data(t, head) + (i64)row * t->row * 2;
    resident_store_row(sums, first, chunks, 0, by[0], at, row < head->exist);
    resident_store_row(sums, first, chunks, 1, by[1], at + 8 * t->row * 2,
                       row + 8 < head->exist);
}

/* The same of sums that key heads add up (common/key_heads.h): floats, straight from registers. */
DEVICE void resident_store_floats(const struct frag_c sums[RESIDENT_CHUNKS], u32 first,
                                  u32 chunks, const struct abi_tensor *t,
                                  const struct resident_head *head, u32 row0)
{
    const u32 row = opt_barrier(row0) + resident_row();
    float *at = (float *)t->data + resident_element(t, head) + row * t->row;
    UNROLL
    for (u32 k = 0; k < 2 * chunks; k++) {
        const struct frag_c *c = &sums[k / 2];
        const u32 high = k % 2, d = 8 * (first + k / 2) + 2 * quad_lane();
        if (row + 8 * high < head->exist && d < HEAD_DIM)
            put_two(at + 8 * high * t->row + d, c->x[2 * high], c->x[2 * high + 1]);
    }
}

DEVICE void resident_store(const struct frag_c sums[RESIDENT_CHUNKS], const float by[2],
                           const struct abi_tensor *t, const struct resident_head *head,
                           u32 row0)
{
    resident_store_part(sums, 0, RESIDENT_CHUNKS, by, t, head, row0);
}

/* LSE of position 0. */
DEVICE float *resident_lse(const struct abi_args *a, const struct resident_head *head)
{
    return a->lse + head->b * a->lse_batch + head->h * a->lse_head + head->first;
}

#endif
