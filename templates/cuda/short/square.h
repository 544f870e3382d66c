/* SPDX-License-Identifier: Apache-2.0 */
/* Backward, short sequences: what a block has in shared memory, Q, K, V and dO and beside them one square
   of halves that holds first P, then dS. It is written by strips of 16 queries, and read by strips
   of 16 keys. Of a dropped entry it has -P: for dV that is 0, for dS it counts. */
#ifndef MASKC_CUDA_SHORT_SQUARE_H
#define MASKC_CUDA_SHORT_SQUARE_H
#include "cuda/short/store.h"
#include "cuda/short/tiles.h"

enum {
    SHORT_STRIPS = SHORT_BACKWARD_STRIPS, /* of a warp: 1 or 2 */
    SHORT_SQUARE_CHUNKS = SHORT_WHOLE / 8,
    SHORT_SQUARE = SHORT_ROWS * SHORT_WHOLE,            /* halves */
    SHORT_HEAD = 4 * SHORT_OPERAND + SHORT_SQUARE + 32, /* the last: a word for each strip */
    SHORT_TILES = (SHORT_WHOLE + 31) / 32,              /* that a strip of queries can have */
    /* Chunks of dV and dK at a time: where the others would leave no registers, half of them. */
    SHORT_KEYS_HALVED = SHORT_STEPS > 8 || (SHORT_TILES > 4 && SHORT_STEPS * SHORT_STRIPS > 4),
    /* Two strips of queries at a time, where there are registers. */
    SHORT_KEYS_PAIRED = SHORT_STRIPS == 1 && !SHORT_KEYS_HALVED && SHORT_WHOLE % 32 == 0,
    SHORT_KEY_CHUNKS = SHORT_KEYS_HALVED ? (SHORT_CHUNKS / 2 + 3) / 4 * 4 : SHORT_CHUNKS,
};

typedef char short_backward_fits[SHORT_BACKWARD_SHARED >= SHORT_BACKWARD_HEADS * SHORT_HEAD * 2
                                     ? 1
                                     : -1];
typedef char short_warps_have_all[SHORT_BACKWARD_WARPS * 16 * SHORT_STRIPS >= SHORT_WHOLE &&
                                          SHORT_WHOLE / 16 <= 16
                                      ? 1
                                      : -1];
typedef char short_strips_share_an_item[STRIP_ROWS % (16 * SHORT_STRIPS) == 0 ? 1 : -1];

enum short_operand { SHORT_Q, SHORT_K, SHORT_V, SHORT_D_O };

DEVICE half_t *short_square(const struct short_job *j)
{
    return j->shared + 4 * SHORT_OPERAND;
}

/* Bit k of the word of a strip of queries: its 16 x 16 entries with keys 16 k .. are in the square. */
DEVICE half_t *short_map(const struct short_job *j, u32 strip)
{
    return j->shared + 4 * SHORT_OPERAND + SHORT_SQUARE + 2 * strip;
}

/* ---- by queries ---- */

/* Bytes from the square's start to the lane's first pair at a tile: the others are worked out from it. */
DEVICE u32 short_square_place(u32 row0, const struct short_tile *t)
{
    /* with a step left over registers are few, and none holds what is worked out from it */
    u32 row = SHORT_STEPS % 2 && SHORT_STEPS < 7 ? afresh(row0) : row0;
    return one_value(4 * short_pair() +
                     2 * short_place(row, short_row(), t->col0 / 8, SHORT_SQUARE_CHUNKS));
}

/* Pair k of a lane at a tile: entries 2 k and 2 k + 1, of fragment k / 2, in the lane's first row or the
   one 8 below. */
DEVICE void *short_square_pair(const struct short_job *j, u32 row0, const struct short_tile *t,
                               u32 k)
{
    const u32 mixed = SHORT_SQUARE_CHUNKS % 4 == 0 ? 4 : 2, f = k / 2;
    const u32 place = short_square_place(row0, t) ^ 16 * (f % mixed);
    return (u8 *)short_square(j) + place + 16 * (f / mixed * mixed + k % 2 * SHORT_WHOLE);
}

/* Whether the square has the row of a pair. 16 x 16 parts without an entry are neither written nor read. */
DEVICE u32 short_square_has(u32 row0, u32 k)
{
    return !SHORT_CUT || row0 + short_row() + 8 * (k % 2) < SHORT_ROWS;
}

DEVICE void short_put(const struct short_job *j, u32 row0, const struct short_tile *t, u32 k,
                      u32 halves)
{
    if (short_square_has(row0, k))
        shared_put_u32(short_square_pair(j, row0, t, k), halves);
}

/* What the lane itself put there. */
DEVICE u32 short_get(const struct short_job *j, u32 row0, const struct short_tile *t, u32 k)
{
    return short_square_has(row0, k) ? shared_get_u32(short_square_pair(j, row0, t, k)) : 0;
}

/* ---- by keys ---- */

/* Zero for queries that are not there, of 16: they were loaded as the last one. */
DEVICE void short_cut_queries(struct frag_a *a, u32 strip)
{
    UNROLL
    for (u32 k = 0; SHORT_CUT && k < 4; k++)
        if (16 * strip + 8 * (k / 2) + 2 * short_pair() >= SHORT_ROWS)
            a->x[k] = 0;
}

/* Zero for dropped entries, the negative ones. */
DEVICE void short_cut_dropped(struct frag_a *a)
{
    UNROLL
    for (u32 k = 0; k < 4; k++)
        a->x[k] &= ~((a->x[k] >> 15 & 0x00010001u) * 0xffffu);
}

/* Bits SHORT_STRIPS q ..: which of the warp's strips of keys have entries with strip q of queries. */
DEVICE u32 short_strips_on(const struct short_job *j, u32 key0)
{
    const u32 lane = short_lane(), mine = (1u << SHORT_STRIPS) - 1;
    u32 on =
        lane < SHORT_WHOLE / 16 ? shared_get_u32(short_map(j, lane)) >> key0 / 16 & mine : 0;
    return warp_or(on << SHORT_STRIPS * lane % 32);
}

/* The square's columns of the warp's keys, transposed, at a strip of queries: first operands, those that
   are `on`. */
DEVICE void short_square_columns(struct frag_a rows[SHORT_STRIPS], const struct short_job *j,
                                 u32 key0, u32 strip, u32 on, u32 signs)
{
    const u32 lane = short_lane();
    UNROLL
    for (u32 m = 0; m < SHORT_STRIPS; m++) {
        u32 chunk = key0 / 8 + 2 * m + lane / 8 % 2;
        u32 at = short_place_there(16 * strip + 8 * (lane / 16), lane % 8, chunk,
                                   SHORT_SQUARE_CHUNKS);
        shared_at from =
            one_address(short_square(j) +
                        short_place(8 * (lane / 16), lane % 8, chunk, SHORT_SQUARE_CHUNKS)) +
            256 * SHORT_SQUARE_CHUNKS * strip;
        rows[m].x[0] = rows[m].x[1] = rows[m].x[2] = rows[m].x[3] = 0;
        if (SHORT_STRIPS == 1 || on >> m & 1)
            matrix_load4_transposed(rows[m].x,
                                    SHORT_CUT ? shared_address(short_square(j) + at) : from);
        short_cut_queries(&rows[m], strip);
        if (DROPOUT && signs)
            short_cut_dropped(&rows[m]);
    }
}

/* These times chunks of the rows of an operand: P times dO, dS times Q. */
DEVICE void short_gather_strip(struct frag_c (*sums)[SHORT_CHUNKS], u32 first,
                               const struct short_job *j, u32 key0, u32 strip, u32 on,
                               enum short_operand which)
{
    struct frag_a rows[SHORT_STRIPS];
    short_square_columns(rows, j, key0, strip, on, which == SHORT_D_O);
    short_apply_part(sums, first, SHORT_KEY_CHUNKS, rows, SHORT_STRIPS, j, which, 16 * strip);
}

/* Over the strips of queries. Where all are on loads overlap with the products before. */
DEVICE void short_gather_chunks(struct frag_c (*sums)[SHORT_CHUNKS], u32 first,
                                const struct short_job *j, u32 key0, enum short_operand which)
{
    enum {
        QUERIES = SHORT_WHOLE / 16,
        MINE = (1 << SHORT_STRIPS) - 1,
        PAIRED = SHORT_KEYS_PAIRED
    };
    const u32 all = 0xffffffffu >> (31 - (QUERIES * SHORT_STRIPS - 1) % 32);
    u32 strips = short_strips_on(j, key0);
    UNROLL
    for (u32 m = 0; m < SHORT_STRIPS; m++)
        short_clear(sums[m]);
    if (PAIRED && strips == all) {
        NO_UNROLL
        for (u32 strip = 0; strip < QUERIES; strip += 2) {
            short_gather_strip(sums, first, j, key0, strip, MINE, which);
            short_gather_strip(sums, first, j, key0, strip + 1, MINE, which);
        }
        return;
    }
    NO_UNROLL
    for (u32 strip = 0; strips; strip++, strips >>= SHORT_STRIPS) {
        u32 on = strips & MINE;
        if (!on)
            continue;
        short_gather_strip(sums, first, j, key0, strip, on, which);
    }
}

/* dV or dK of the warp's keys. */
DEVICE void short_gather_keys(const struct short_job *j, u32 key0, enum short_operand which,
                              const struct abi_tensor *to, float scale)
{
    const float by[2] = {1, 1};
    NO_UNROLL
    for (u32 first = 0; first < SHORT_CHUNKS; first += SHORT_KEY_CHUNKS) {
        struct frag_c sums[SHORT_STRIPS][SHORT_CHUNKS];
        short_gather_chunks(sums, first, j, key0, which);
        NO_UNROLL
        for (u32 m = 0; m < SHORT_STRIPS; m++) { /* by one text; no index picks a register */
            short_scale(sums[0], scale);
            short_store_part(sums[0], first, SHORT_KEY_CHUNKS, by, to, j, key0 + 16 * m);
            short_move(sums[0], sums[SHORT_STRIPS - 1]);
        }
    }
}

#endif
