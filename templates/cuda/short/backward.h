/* SPDX-License-Identifier: Apache-2.0 */
/* Backward, short sequences: one kernel, one block a head, five products, nothing added by two
   threads. A warp has strips of 16 queries where rows are read (P, dS, dQ) and of 16 keys where
   columns are (dV, dK); two strips at a time, where registers allow it, halve what is read from shared
   memory:

       queries   P, and P (dP - c)       P to the square        c = dO . O, O as it was rounded
       keys      dV = P^T dO
       queries   dS = P (dP - delta)     dS to the square       dQ = dS K
       keys      dK = dS^T Q

   delta is c but for what the rounding of O took: the sum over a row of P (dP - c), which is known at
   the end of the first turn. Until the second the warp holds P (dP - c) in registers (short/held.h) and
   then takes P, as it was rounded, times that sum from it; S and dP are not computed again.

   For sparsegen dS = (dP - mean of dP over the support) / (1 - lambda) on the support: dP - c is held. */
#ifndef MASKC_CUDA_SHORT_BACKWARD_H
#define MASKC_CUDA_SHORT_BACKWARD_H
#include "cuda/short/weigh.h"

enum {
    /* Chunks of dQ at a time: where it would take half of the registers, half of them. */
    SHORT_QUERIES_HALVED = SHORT_STEPS > 8 || SHORT_TIGHT,
    SHORT_QUERY_CHUNKS = SHORT_QUERIES_HALVED ? (SHORT_CHUNKS / 2 + 3) / 4 * 4 : SHORT_CHUNKS,
};

/* ---- the second turn of queries ---- */

/* dS in place of P at 16 columns of a tile, and as the first operand of a product over them; `again`:
   it is there already. */
DEVICE void short_second(struct frag_a *ds, const struct short_held *held, u32 strip, u32 at,
                         const struct abi_args *a, const struct short_job *j, u32 row0,
                         const struct short_tile *t, u32 half, u32 again)
{
    const float scale = short_scale_held(a);
    const u32 parted = SHORT_PARTS > 1, at_part = SHORT_PARTS * at + (parted ? half : 0);
    const struct short_slope one = short_kept_slope(held, strip, at_part);
    const u32 live = short_live(t, 2 * half, 2);
    ds->x[0] = ds->x[1] = ds->x[2] = ds->x[3] = 0;
    UNROLL
    for (u32 k = 4 * half; live && k < 4 * half + 4; k++) {
        u32 p = TRANSFORM == ABI_SPARSEGEN && !again ? 0 : short_get(j, row0, t, k);
        ds->x[k % 4] = p;
        if (again)
            continue;
        ds->x[k % 4] = short_release(&one, parted ? k % 4 : k, p,
                                     short_missing(held, strip, k % 2), scale);
        short_put(j, row0, t, k, ds->x[k % 4]);
    }
}

/* Chunks of dQ from `first` on, and dS to the square with the first ones. */
DEVICE void short_turn_part(struct frag_c (*d_q)[SHORT_CHUNKS], u32 first,
                            const struct abi_args *a, const struct short_job *j, u32 row0,
                            const struct short_held *held, u32 strip)
{
    struct short_walk w = short_walk_at(&a->forward, j, row0, SHORT_TOGETHER);
    struct short_tile t[SHORT_TOGETHER];
    UNROLL
    for (u32 m = 0; m < SHORT_TOGETHER; m++)
        short_clear(d_q[m]);
    NO_UNROLL
    for (u32 at = 0; short_next(&w, j, t, SHORT_TOGETHER); at++) {
        UNROLL
        for (u32 half = 0; half < 2; half++) {
            struct frag_a ds[SHORT_TOGETHER];
            if (!(short_any(t, SHORT_TOGETHER) >> 16 * half & 0xffff))
                continue;
            UNROLL
            for (u32 m = 0; m < SHORT_TOGETHER; m++)
                short_second(&ds[m], held, strip + m, at, a, j, row0 + 16 * m, &t[m], half,
                             SHORT_QUERIES_HALVED && first);
            short_apply_part(d_q, first, SHORT_QUERY_CHUNKS, ds, SHORT_TOGETHER, j, SHORT_K,
                             t[0].col0 + 16 * half);
        }
    }
}

/* dS to the square, and dQ. */
DEVICE void short_turn(const struct abi_args *a, const struct short_job *j, u32 row0,
                       const struct short_held *held, u32 strip)
{
    const float left = short_scale_left(a) * short_kept_scale(a), by[2] = {1, 1};
    NO_UNROLL
    for (u32 first = 0; first < SHORT_CHUNKS; first += SHORT_QUERY_CHUNKS) {
        struct frag_c d_q[SHORT_TOGETHER][SHORT_CHUNKS];
        short_turn_part(d_q, first, a, j, row0, held, strip);
        NO_UNROLL
        for (u32 m = 0; m < SHORT_TOGETHER; m++) { /* by one text; no index picks a register */
            short_scale(d_q[0], left);
            short_store_part(d_q[0], first, SHORT_QUERY_CHUNKS, by, &a->d_q, j, row0 + 16 * m);
            short_move(d_q[0], d_q[SHORT_TOGETHER - 1]);
        }
    }
}

/* ---- a head ---- */

DEVICE void short_fetch_all(const struct abi_args *a, const struct short_job *j)
{
    const struct abi_tensor *const all[] = {&a->q, &a->k, &a->v, &a->d_o};
    short_fetch(SHORT_Q, 4, all, j, SHORT_BACKWARD_WARPS);
    copy_async_commit();
}

/* All operands, and what the queries begin with. */
DEVICE void short_start(const struct abi_args *a, const struct short_job *j, u32 row0,
                        struct short_state state[SHORT_STRIPS])
{
    const u32 strips = SHORT_AHEAD ? SHORT_STRIPS : 0;
    struct frag_a o[SHORT_STRIPS][SHORT_STEPS];
    short_fetch_all(a, j);
    UNROLL
    for (u32 m = 0; m < strips; m++)
        short_read_rows(&state[m], o[m], a, j, row0 + 16 * m);
    COPY_ASYNC_WAIT(0);
    SYNC(); /* all has arrived */
    UNROLL
    for (u32 m = 0; m < strips; m++)
        short_centres(&state[m], o[m], a, j, row0 + 16 * m);
}

/* A turn of all strips of the warp. */
DEVICE void short_queries(const struct abi_args *a, const struct short_job *j, u32 row0,
                          u32 turn, struct short_state *state, struct short_held *held)
{
    NO_UNROLL
    for (u32 m = 0; m < SHORT_STRIPS; m += SHORT_TOGETHER) {
        if (turn)
            short_turn(a, j, row0 + 16 * m, held, m);
        else if (!SHORT_AHEAD)
            short_weigh_alone(a, j, row0 + 16 * m, held, m);
        else
            short_weigh(a, j, row0, state, held, 0);
    }
}

/* One head of each team. */
DEVICE void short_backward(const struct abi_args *a, const struct short_job *j)
{
    struct short_state state[SHORT_STRIPS];
    struct short_held held[SHORT_STRIPS];
    const u32 row0 = 16 * SHORT_STRIPS * j->warp;
    SYNC(); /* the head before is no longer read */
    short_start(a, j, row0, state);
    NO_UNROLL
    for (u32 turn = 0; turn < 2; turn++) {
        short_queries(a, j, row0, turn, state, held);
        SYNC(); /* the square is whole */
        short_gather_keys(j, row0, turn ? SHORT_Q : SHORT_D_O, turn ? &a->d_k : &a->d_v,
                          (turn ? short_scale_left(a) : 1) * short_kept_scale(a));
        if (!turn)
            SYNC(); /* it is no longer read */
    }
}

#endif
