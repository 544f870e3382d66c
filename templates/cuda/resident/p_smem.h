/* SPDX-License-Identifier: Apache-2.0 */
/* Resident family, backward: p_smem, an n x n matrix of halves in shared memory, behind Q, K, V and dO: first P,
   then dS. Warp tiles of 16 queries write it, warp tiles of 16 keys read it transposed: dV = P^T dO, dK = dS^T
   Q. Of a dropped entry it holds -P, which counts as 0 for dV and as P for dS. */
#ifndef MASKC_CUDA_RESIDENT_P_SMEM_H
#define MASKC_CUDA_RESIDENT_P_SMEM_H
#include "cuda/resident/row_places.h"
#include "cuda/resident/store.h"

enum {
    RESIDENT_ROW_BLOCKS = RESIDENT_BACKWARD_ROW_BLOCKS, /* of a warp: 1 or 2 */
    P_SMEM_CHUNKS = RESIDENT_WHOLE / 8,
    P_SMEM_HALVES = RESIDENT_ROWS * RESIDENT_WHOLE, /* halves */
    RESIDENT_HEAD =
        4 * RESIDENT_OPERAND + P_SMEM_HALVES + 32, /* 32: a word for each warp tile */
    RESIDENT_TILES = (RESIDENT_WHOLE + 31) / 32,   /* column tiles of a row of queries */
    /* Chunks of dV and dK at a time: half of them where registers are few. */
    RESIDENT_KEYS_HALVED =
        RESIDENT_STEPS > 8 || (RESIDENT_TILES > 4 && RESIDENT_STEPS * RESIDENT_ROW_BLOCKS > 4),
    /* Two warp tiles of queries at a time, where there are registers. */
    RESIDENT_KEYS_PAIRED =
        (RESIDENT_ROW_BLOCKS == 1) && !RESIDENT_KEYS_HALVED && RESIDENT_WHOLE % 32 == 0,
    RESIDENT_KEY_CHUNKS =
        RESIDENT_KEYS_HALVED ? (RESIDENT_CHUNKS / 2 + 3) / 4 * 4 : RESIDENT_CHUNKS,
};

typedef char resident_backward_fits[RESIDENT_HEAD * 2 == RESIDENT_BACKWARD_BYTES(RESIDENT_ROWS,
                                                                                 HEAD_DIM) &&
                                            RESIDENT_BACKWARD_SHARED >=
                                                RESIDENT_BACKWARD_HEADS * RESIDENT_HEAD * 2
                                        ? 1
                                        : -1];
typedef char resident_warps_have_all[RESIDENT_BACKWARD_WARPS * 16 * RESIDENT_ROW_BLOCKS >=
                                                 RESIDENT_WHOLE &&
                                             RESIDENT_WHOLE / 16 <= 16
                                         ? 1
                                         : -1];
typedef char
    resident_row_blocks_share_an_item[BLOCK_ROWS % (16 * RESIDENT_ROW_BLOCKS) == 0 ? 1 : -1];

enum resident_operand { RESIDENT_Q, RESIDENT_K, RESIDENT_V, RESIDENT_D_O };

DEVICE half_t *p_smem(const struct resident_head *head)
{
    return head->shared + 4 * RESIDENT_OPERAND;
}

/* The word of a warp tile of queries: bit k tells that its 16 x 16 entries with keys 16 k .. were written. */
DEVICE half_t *p_smem_map(const struct resident_head *head, u32 row_block)
{
    return head->shared + 4 * RESIDENT_OPERAND + P_SMEM_HALVES + 2 * row_block;
}

/* ---- by queries ---- */

/* Bytes from the start of p_smem to the lane's first pair at a column tile. */
DEVICE u32 p_smem_place(u32 row0, const struct resident_tile *t)
{
    /* with 1, 3 or 5 steps registers are few: the address is computed for each use */
    u32 row = RESIDENT_STEPS % 2 && RESIDENT_STEPS < 7 ? opt_barrier(row0) : row0;
    return one_value(4 * quad_lane() +
                     2 * resident_place(row, resident_row(), t->col0 / 8, P_SMEM_CHUNKS));
}

/* Pair k of a lane at a column tile: two entries of fragment k / 2, in the lane's first row (k even) or the one 8
   below. */
DEVICE void *p_smem_pair(const struct resident_head *head, u32 row0,
                         const struct resident_tile *t, u32 k)
{
    const u32 mixed = P_SMEM_CHUNKS % 4 == 0 ? 4 : 2, f = k / 2;
    const u32 place = p_smem_place(row0, t) ^ 16 * (f % mixed);
    return (u8 *)p_smem(head) + place + 16 * (f / mixed * mixed + k % 2 * RESIDENT_WHOLE);
}

/* True if the row of a pair exists. */
DEVICE u32 p_smem_has(u32 row0, u32 k)
{
    return !RESIDENT_CUT || row0 + resident_row() + 8 * (k % 2) < RESIDENT_ROWS;
}

DEVICE void p_smem_put(const struct resident_head *head, u32 row0,
                       const struct resident_tile *t, u32 k, u32 halves)
{
    if (p_smem_has(row0, k))
        shared_put_u32(p_smem_pair(head, row0, t, k), halves);
}

/* Reads a pair that the lane itself wrote. */
DEVICE u32 p_smem_get(const struct resident_head *head, u32 row0, const struct resident_tile *t,
                      u32 k)
{
    return p_smem_has(row0, k) ? shared_get_u32(p_smem_pair(head, row0, t, k)) : 0;
}

/* ---- by keys ---- */

/* Zero for queries beyond the last: the loads took the last row for them. */
DEVICE void resident_cut_queries(struct frag_a *a, u32 row_block)
{
    UNROLL
    for (u32 k = 0; RESIDENT_CUT && k < 4; k++)
        if (16 * row_block + 8 * (k / 2) + 2 * quad_lane() >= RESIDENT_ROWS)
            a->x[k] = 0;
}

/* Zero for dropped entries, which are negative. */
DEVICE void resident_cut_dropped(struct frag_a *a)
{
    UNROLL
    for (u32 k = 0; k < 4; k++)
        a->x[k] &= ~((a->x[k] >> 15 & 0x00010001u) * 0xffffu);
}

/* Returns RESIDENT_ROW_BLOCKS bits for each warp tile q of queries, from bit RESIDENT_ROW_BLOCKS q on: one for each of the
   warp's tiles of keys that has entries with it. */
DEVICE u32 resident_row_blocks_on(const struct resident_head *head, u32 key0)
{
    const u32 l = lane(), mine = (1u << RESIDENT_ROW_BLOCKS) - 1;
    u32 on =
        l < RESIDENT_WHOLE / 16 ? shared_get_u32(p_smem_map(head, l)) >> key0 / 16 & mine : 0;
    return warp_or(on << RESIDENT_ROW_BLOCKS * l % 32);
}

/* What products of the warp's keys read: p_smem, transposed, from addresses of warp tile 0 of queries, and an operand. */
struct resident_key_operands {
    shared_at p[RESIDENT_ROW_BLOCKS];
    struct resident_row_places rows;
    u32 key0;
};

DEVICE struct resident_key_operands resident_key_operands_of(const struct resident_head *head,
                                                             u32 key0, u32 which)
{
    const u32 l = lane();
    struct resident_key_operands ret;
    ret.rows = resident_places_in(head, which);
    ret.key0 = key0;
    UNROLL
    for (u32 m = 0; m < RESIDENT_ROW_BLOCKS; m++)
        ret.p[m] = one_address(p_smem(head) + resident_place(8 * (l / 16), l % 8,
                                                             key0 / 8 + 2 * m + l / 8 % 2,
                                                             P_SMEM_CHUNKS));
    return ret;
}

/* Columns of p_smem at a warp tile of queries, transposed: first operands for the warp's tiles of keys that are
   `on`. */
DEVICE void p_smem_load_transposed(struct frag_a rows[RESIDENT_ROW_BLOCKS],
                                   const struct resident_head *head,
                                   const struct resident_key_operands *from, u32 row_block,
                                   u32 on)
{
    const u32 l = lane();
    UNROLL
    for (u32 m = 0; m < RESIDENT_ROW_BLOCKS; m++) {
        const u32 at = resident_place_there(16 * row_block + 8 * (l / 16), l % 8,
                                            from->key0 / 8 + 2 * m + l / 8 % 2, P_SMEM_CHUNKS);
        rows[m].x[0] = rows[m].x[1] = rows[m].x[2] = rows[m].x[3] = 0;
        if (RESIDENT_ROW_BLOCKS == 1 || on >> m & 1)
            matrix_load4_transposed(rows[m].x, RESIDENT_CUT ? shared_address(p_smem(head) + at)
                                                            : from->p[m] + 256 * P_SMEM_CHUNKS *
                                                                               row_block);
        resident_cut_queries(&rows[m], row_block);
        if (DROPOUT && !RESIDENT_ALL && from->rows.operand == RESIDENT_D_O)
            resident_cut_dropped(&rows[m]);
    }
}

/* += P^T dO or dS^T Q over one warp tile of queries. */
DEVICE void resident_key_row_block(struct frag_c (*sums)[RESIDENT_CHUNKS], u32 first,
                                   const struct resident_head *head,
                                   const struct resident_key_operands *from, u32 row_block,
                                   u32 on)
{
    struct frag_a rows[RESIDENT_ROW_BLOCKS];
    p_smem_load_transposed(rows, head, from, row_block, on);
    if (RESIDENT_KEY_CHUNKS == RESIDENT_CHUNKS)
        resident_apply_at(sums, rows, RESIDENT_ROW_BLOCKS, head, &from->rows, 16 * row_block);
    else
        resident_apply_part(sums, first, RESIDENT_KEY_CHUNKS, rows, RESIDENT_ROW_BLOCKS, head,
                            from->rows.operand, 16 * row_block);
}

/* The sum over all warp tiles of queries. Where all are on, two at a time: loads overlap with products. */
DEVICE void resident_key_chunks(struct frag_c (*sums)[RESIDENT_CHUNKS], u32 first,
                                const struct resident_head *head, u32 key0, u32 which)
{
    enum {
        QUERIES = RESIDENT_WHOLE / 16,
        MINE = (1 << RESIDENT_ROW_BLOCKS) - 1,
        PAIRED = RESIDENT_KEYS_PAIRED
    };
    const u32 all = 0xffffffffu >> (31 - (QUERIES * RESIDENT_ROW_BLOCKS - 1) % 32);
    const struct resident_key_operands from = resident_key_operands_of(head, key0, which);
    u32 row_blocks = resident_row_blocks_on(head, key0);
    UNROLL
    for (u32 m = 0; m < RESIDENT_ROW_BLOCKS; m++)
        resident_clear(sums[m]);
    if (row_blocks == all) {
        UNROLL_BY(PAIRED ? 2 : 1)
        for (u32 row_block = 0; row_block < QUERIES; row_block++)
            resident_key_row_block(sums, first, head, &from, row_block, MINE);
        return;
    }
    NO_UNROLL
    for (u32 row_block = 0; row_blocks; row_block++, row_blocks >>= RESIDENT_ROW_BLOCKS)
        if (row_blocks & MINE)
            resident_key_row_block(sums, first, head, &from, row_block, row_blocks & MINE);
}

/* dV (from P and dO) or dK (from dS and Q) of the warp's keys. */
DEVICE void resident_keys(const struct resident_head *head, u32 key0, u32 which,
                          const struct abi_tensor *to, float scale)
{
    const float by[2] = {1, 1};
    NO_UNROLL
    for (u32 first = 0; first < RESIDENT_CHUNKS; first += RESIDENT_KEY_CHUNKS) {
        struct frag_c sums[RESIDENT_ROW_BLOCKS][RESIDENT_CHUNKS];
        resident_key_chunks(sums, first, head, key0, which);
        NO_UNROLL
        for (u32 m = 0; m < RESIDENT_ROW_BLOCKS;
             m++) { /* a copy, not an index, keeps sums in registers */
            resident_scale(sums[0], scale);
            if (GROUPED)
                resident_store_floats(sums[0], first, RESIDENT_KEY_CHUNKS, to, head,
                                      key0 + 16 * m);
            else
                resident_store_part(sums[0], first, RESIDENT_KEY_CHUNKS, by, to, head,
                                    key0 + 16 * m);
            resident_move(sums[0], sums[RESIDENT_ROW_BLOCKS - 1]);
        }
    }
}

#endif
