/* SPDX-License-Identifier: Apache-2.0 */
/* 16 rows of the caller's tensors: read as fragments; sums written 8 bytes a lane, after neighbouring lanes have
   exchanged words: a store fills whole sectors of 32 bytes. */
#ifndef MASKC_CUDA_RESIDENT_STORE_H
#define MASKC_CUDA_RESIDENT_STORE_H
#include "cuda/resident/head.h"

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

/* Lane t of a quad has word t of two chunks. It gets words 2 (t / 2) and the next one of chunk t % 2. */
DEVICE struct u32x2 resident_exchange(u32 even, u32 odd)
{
    const u32 second = THREAD & 1;
    const u32 got = bits_of(SHUFFLE_XOR(float_of(second ? even : odd), 1));
    const struct u32x2 ret = {second ? got : even, second ? odd : got};
    return ret;
}

/* The lane's row (high: the one 8 below) of sums, times `by`; `sums` are of `chunks` chunks from `first`. */
DEVICE void resident_store_row(const struct frag_c sums[RESIDENT_CHUNKS], u32 first, u32 chunks,
                               u32 high, float by, u8 *row, u32 there)
{
    const u32 chunk_of = quad_lane() % 2, word = quad_lane() / 2 * 2;
    const u32 all_there = HEAD_DIM % 16 == 0 && RESIDENT_CHUNKS % chunks == 0;
    u8 *at = row + one_value(16 * (first + chunk_of) + 4 * word);
    UNROLL
    for (u32 chunk = 0; chunk < chunks; chunk += 2) {
        const struct frag_c *c = &sums[chunk];
        const struct u32x2 v =
            resident_exchange(half_pack(c[0].x[2 * high] * by, c[0].x[2 * high + 1] * by),
                              half_pack(c[1].x[2 * high] * by, c[1].x[2 * high + 1] * by));
        if (there && (all_there || 8 * (first + chunk + chunk_of) < HEAD_DIM))
            *(struct u32x2 *)(at + 16 * chunk) = v;
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
