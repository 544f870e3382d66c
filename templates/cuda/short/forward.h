/* SPDX-License-Identifier: Apache-2.0 */
/* Forward, short sequences: K and V of a head in shared memory, Q in registers, 16 query rows a
   warp. Up to 128 rows all scores of a query are known before its weights are; beyond that the
   softmax runs over two tiles at a time. */
#ifndef MASKC_CUDA_SHORT_FORWARD_H
#define MASKC_CUDA_SHORT_FORWARD_H
#include "cuda/short/softmax.h"
#include "cuda/short/store.h"

typedef char short_forward_fits
    [SHORT_FORWARD_SHARED >= SHORT_FORWARD_HEADS * 2 * SHORT_OPERAND * 2 ? 1 : -1];
typedef char short_sparsegen_fits[TRANSFORM != ABI_SPARSEGEN || SHORT_ALL ? 1 : -1];

enum { SHORT_KEYS, SHORT_VALUES }; /* operands */

/* The next tiles, and which of their halves live: 0 at the end. Where all are held, each is in its place. */
DEVICE u32 short_tiles(struct short_walk *w, const struct short_job *j,
                       struct short_tile t[SHORT_HELD])
{
    struct short_tile next;
    u32 count = 0, lives = 0;
    UNROLL
    for (u32 u = 0; u < SHORT_HELD; u++) {
        t[u].col0 = SHORT_ALL ? 32 * u : 0;
        t[u].seen = t[u].any = 0;
    }
    NO_UNROLL
    while (count < SHORT_HELD && short_next(w, j, &next, 1)) {
        UNROLL
        for (u32 u = 0; u < SHORT_HELD; u++) {
            u32 here = SHORT_ALL ? next.col0 == 32 * u : count == u;
            t[u].col0 = !SHORT_ALL && here ? next.col0 : t[u].col0;
            t[u].seen = here ? next.seen : t[u].seen;
            t[u].any = here ? next.any : t[u].any;
        }
        lives |= short_halves(&next) << 2 * (SHORT_ALL ? next.col0 / 32 : count);
        count++;
    }
    return lives;
}

/* Q, where the scale is negative with the other sign: so it may be taken for a positive one, and the largest
   score is that of the largest product. */
DEVICE void short_query_rows(struct frag_a *rows, u32 step, u32 count, const struct abi_args *a,
                             const struct short_job *j, u32 row0)
{
    const u32 flip = a->scale < 0 ? 0x80008000u : 0;
    short_rows_of(rows, step, count, &a->q, j, row0);
    UNROLL
    for (u32 k = 0; k < 4 * count; k++)
        rows[k / 4].x[k % 4] ^= flip;
}

/* Q of the warp's rows: held where registers allow it, else read again for each chunk of tiles. */
DEVICE void short_hold_rows(struct frag_a q[SHORT_STEPS], const struct abi_args *a,
                            const struct short_job *j, u32 row0)
{
    if (!SHORT_ROLLED)
        short_query_rows(q, 0, SHORT_STEPS, a, j, row0);
}

/* Products over the steps of a wide head in a loop, which is text for the compiler saved: then Q's steps
   take turns in the registers of the first. Only where no tiles come after these. */
enum {
    SHORT_TURNS = SHORT_ALL && SHORT_STEPS > 6 && !SHORT_ROLLED,
    SHORT_PIECES = SHORT_TURNS || SHORT_ROLLED ? 2 : 1, /* or more: of the steps of the head */
};

DEVICE void short_next_steps(struct frag_a q[SHORT_STEPS])
{
    UNROLL
    for (u32 k = 0; SHORT_TURNS && k + 2 < SHORT_STEPS; k++)
        q[k] = q[k + 2];
}

/* `last`: no steps follow, scores are masked. */
DEVICE void short_chunk_dots(struct short_scores s[SHORT_HELD],
                             const struct short_tile t[SHORT_HELD], const struct frag_a *rows,
                             u32 step, u32 steps, const struct short_job *j, u32 last)
{
    UNROLL
    for (u32 u = 0; u < SHORT_HELD; u++) {
        short_dots(&s[u], rows, 0, step, steps, j, SHORT_KEYS, &t[u], 1, 4);
        if (last)
            short_mask(&s[u], &t[u]);
    }
}

/* Masked scores of the next tiles; what is not there is not seen. Returns which halves of them live. */
DEVICE u32 short_chunk(struct short_walk *w, const struct abi_args *a,
                       const struct short_job *j, struct frag_a q[SHORT_STEPS],
                       struct short_tile t[SHORT_HELD], struct short_scores s[SHORT_HELD])
{
    u32 lives = short_tiles(w, j, t);
    UNROLL
    for (u32 u = 0; u < SHORT_HELD; u++)
        short_scores_clear(&s[u]);
    NO_UNROLL
    for (u32 step = 0; step < SHORT_STEPS && SHORT_PIECES > 1; step += 2) {
        struct frag_a two[2];
        if (SHORT_ROLLED)
            short_query_rows(two, step, 2, a, j, w->row0);
        short_chunk_dots(s, t, SHORT_ROLLED ? two : q, step, 2, j, 0);
        short_next_steps(q);
    }
    if (SHORT_PIECES == 1)
        short_chunk_dots(s, t, q, 0, SHORT_STEPS, j, 1);
    UNROLL
    for (u32 u = 0; u < SHORT_HELD && SHORT_PIECES > 1; u++)
        short_mask(&s[u], &t[u]);
    return lives;
}

/* Tiles of wide heads are weighed in a loop, which is text for the compiler saved; the widest have no
   register left for it. */
enum { SHORT_TILES_ROLLED = SHORT_ROLLED && SHORT_STEPS < 16 };

/* The next tile where the first was: no index of the loop picks a register. */
DEVICE void short_move_tiles(struct short_scores s[SHORT_HELD], struct short_tile t[SHORT_HELD])
{
    UNROLL
    for (u32 u = 0; SHORT_TILES_ROLLED && u + 1 < SHORT_HELD; u++) {
        s[u] = s[u + 1];
        t[u].col0 = t[u + 1].col0;
    }
}

DEVICE void short_add_values(struct frag_c (*o)[SHORT_CHUNKS],
                             struct short_scores s[SHORT_HELD], struct short_tile t[SHORT_HELD],
                             u32 lives, const struct abi_args *a, const struct short_job *j,
                             u32 row0)
{
    UNROLL_BY(SHORT_TILES_ROLLED ? 1 : SHORT_HELD)
    for (u32 u = 0; u < SHORT_HELD; u++) {
        const u32 at = SHORT_TILES_ROLLED ? 0 : u;
        struct short_tile now = t[at];
        now.col0 = SHORT_ALL ? 32 * u : now.col0; /* no register holds it from tile to tile */
        if (short_lives(lives, u)) {
            short_drop(&s[at], short_kept(a, j, row0, &now, 2, 1));
            short_accumulate(o, &s[at], j, SHORT_VALUES, now.col0, short_lives(lives, u));
        }
        short_move_tiles(s, t);
    }
}

/* The rows' outputs and LSE (or tau) from sums of weights times values. */
DEVICE void short_finish(const struct frag_c o[SHORT_CHUNKS], const float by[2],
                         const float lse[2], const struct abi_args *a,
                         const struct short_job *j, u32 row0)
{
    float kept = short_kept_scale(a), factor[2] = {by[0] * kept, by[1] * kept};
    u32 row = row0 + short_row();
    short_store(o, factor, &a->o, j, row0);
    if (short_pair() == 0 && row < j->exist)
        short_lse(a, j)[row] = lse[0];
    if (short_pair() == 0 && row + 8 < j->exist)
        short_lse(a, j)[row + 8] = lse[1];
}

/* All K and V have arrived, where a barrier may be: heads of up to 128 rows begin on K alone. */
DEVICE void short_values_arrive(void)
{
    if (SHORT_ALL) {
        COPY_ASYNC_WAIT(0);
        SYNC();
    }
}

DEVICE void short_strip_sparsegen(const struct abi_args *a, const struct short_job *j, u32 row0)
{
    struct short_walk w = short_walk_at(&a->forward, j, row0, 1);
    struct frag_a q[SHORT_STEPS];
    struct short_tile t[SHORT_HELD];
    struct short_scores s[SHORT_HELD];
    struct frag_c o[SHORT_CHUNKS];
    float tau[2];
    const float by[2] = {1, 1};
    short_hold_rows(q, a, j, row0);
    const u32 lives = short_chunk(&w, a, j, q, t, s);
    UNROLL
    for (u32 k = 0; k < 16 * SHORT_HELD; k++)
        s[k / 16].at[k / 4 % 4].x[k % 4] *= a->scale < 0 ? -a->scale : a->scale;
    short_tau(s, lives, a->lambda, tau);
    const float slope = sparsegen_slope(a);
    UNROLL
    for (u32 k = 0; k < 16 * SHORT_HELD; k++) {
        float *x = &s[k / 16].at[k / 4 % 4].x[k % 4];
        *x = sparsegen_weight(*x, tau[k / 2 % 2], slope);
    }
    short_values_arrive();
    short_clear(o);
    short_add_values(&o, s, t, lives, a, j, row0);
    short_finish(o, by, tau, a, j, row0);
}

/* What products of Q, whose signs are flipped where the scale is negative, are multiplied by: worked out where
   it is wanted, no register holds it before. */
DEVICE float short_unit(const struct abi_args *a)
{
    return magnitude_of(float_of(afresh(bits_of(a->scale)))) * SHORT_LOG2_E;
}

DEVICE void short_strip_softmax(const struct abi_args *a, const struct short_job *j, u32 row0)
{
    struct short_walk w = short_walk_at(&a->forward, j, row0, 1);
    struct short_rows r = {{SHORT_NOTHING, SHORT_NOTHING}, {0, 0}};
    struct frag_a q[SHORT_STEPS];
    struct short_tile t[SHORT_HELD];
    struct short_scores s[SHORT_HELD];
    struct frag_c o[SHORT_CHUNKS];
    float unit, shrink[2], by[2], lse[2];
    short_hold_rows(q, a, j, row0);
    if (SHORT_ALL) {
        const u32 lives = short_chunk(&w, a, j, q, t, s);
        unit = short_unit(a);
        short_softmax(s, lives, unit, &r, shrink);
        short_values_arrive();
        short_clear(o);
        short_add_values(&o, s, t, lives, a, j, row0);
    } else {
        unit = short_unit(a);
        short_clear(o);
        NO_UNROLL
        for (u32 lives; (lives = short_chunk(&w, a, j, q, t, s));) {
            short_softmax(s, lives, unit, &r, shrink);
            UNROLL
            for (u32 k = 0; k < 4 * SHORT_CHUNKS; k++)
                o[k / 4].x[k % 4] *= shrink[k / 2 % 2];
            short_add_values(&o, s, t, lives, a, j, row0);
        }
    }
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        float sum = quad_sum(r.sum[k]);
        by[k] = sum > 0 ? 1 / sum : 0;
        lse[k] = sum > 0 ? (r.top[k] * unit + log2_of(sum)) * SHORT_LN_2 : SHORT_NOTHING;
    }
    short_finish(o, by, lse, a, j, row0);
}

/* One head of each team. The warps of a team take its strips of 16 rows in turn, all equally often,
   because there are barriers on the way. */
DEVICE void short_forward(const struct abi_args *a, const struct short_job *j)
{
    enum { STRIDE = 16 * SHORT_FORWARD_WARPS };
    const struct abi_tensor *const keys[] = {&a->k}, *const values[] = {&a->v};
    SYNC(); /* the head before is no longer read */
    short_fetch(SHORT_KEYS, 1, keys, j, SHORT_FORWARD_WARPS);
    copy_async_commit();
    short_fetch(SHORT_VALUES, 1, values, j, SHORT_FORWARD_WARPS);
    copy_async_commit();
    COPY_ASYNC_WAIT(SHORT_ALL ? 1 : 0);
    SYNC();
    NO_UNROLL
    for (u32 first = 0; first < SHORT_ROWS; first += STRIDE) {
        u32 row0 = first + 16 * j->warp;
        if (TRANSFORM == ABI_SPARSEGEN)
            short_strip_sparsegen(a, j, row0);
        else
            short_strip_softmax(a, j, row0);
    }
}

#endif
