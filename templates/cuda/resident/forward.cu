/* SPDX-License-Identifier: Apache-2.0 */
/* Forward, short sequences: K and V of a head in shared memory, Q in registers, 16 query rows a
   warp. Up to 128 rows all scores of a query are known before its weights are; beyond that the
   softmax runs over two tiles at a time. */
#include "cuda/resident/softmax.h"
#include "cuda/resident/store.h"

typedef char resident_forward_fits
    [RESIDENT_FORWARD_SHARED >= RESIDENT_FORWARD_HEADS * 2 * RESIDENT_OPERAND * 2 ? 1 : -1];
typedef char resident_sparsegen_fits[TRANSFORM != ABI_SPARSEGEN || RESIDENT_ALL ? 1 : -1];

enum { RESIDENT_KEYS, RESIDENT_VALUES }; /* operands */

/* The next tiles, and which of their halves live: 0 at the end. Where all are held, each is in its place. */
DEVICE u32 resident_tiles(struct resident_walk *w, const struct resident_head *head,
                          struct resident_tile t[RESIDENT_TILES_AT_ONCE])
{
    struct resident_tile next;
    u32 count = 0, lives = 0;
    UNROLL
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++) {
        t[u].col0 = RESIDENT_ALL ? 32 * u : 0;
        t[u].seen = t[u].any = 0;
    }
    NO_UNROLL
    while (count < RESIDENT_TILES_AT_ONCE && resident_next(w, head, &next, 1)) {
        UNROLL
        for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++) {
            u32 here = RESIDENT_ALL ? next.col0 == 32 * u : count == u;
            t[u].col0 = !RESIDENT_ALL && here ? next.col0 : t[u].col0;
            t[u].seen = here ? next.seen : t[u].seen;
            t[u].any = here ? next.any : t[u].any;
        }
        lives |= resident_halves(&next) << 2 * (RESIDENT_ALL ? next.col0 / 32 : count);
        count++;
    }
    return lives;
}

/* Q, where the scale is negative with the other sign: so it may be taken for a positive one, and the largest
   score is that of the largest product. */
DEVICE void resident_query_rows(struct frag_a *rows, u32 step, u32 count,
                                const struct abi_args *a, const struct resident_head *head,
                                u32 row0)
{
    const u32 flip = a->scale < 0 ? 0x80008000u : 0;
    resident_rows_of(rows, step, count, &a->q, head, row0);
    UNROLL
    for (u32 k = 0; k < 4 * count; k++)
        rows[k / 4].x[k % 4] ^= flip;
}

/* Q of the warp's rows: held where registers allow it, else read again for each chunk of tiles. */
DEVICE void resident_load_q(struct frag_a q[RESIDENT_STEPS], const struct abi_args *a,
                            const struct resident_head *head, u32 row0)
{
    if (!RESIDENT_ROLLED)
        resident_query_rows(q, 0, RESIDENT_STEPS, a, head, row0);
}

/* Products over the steps of a wide head in a loop, which is text for the compiler saved: then Q's steps
   take turns in the registers of the first. Only where no tiles come after these. */
enum {
    RESIDENT_Q_ROTATED = RESIDENT_ALL && RESIDENT_STEPS > 6 && !RESIDENT_ROLLED,
    RESIDENT_PIECES =
        RESIDENT_Q_ROTATED || RESIDENT_ROLLED ? 2 : 1, /* or more: of the steps of the head */
};

DEVICE void resident_next_steps(struct frag_a q[RESIDENT_STEPS])
{
    UNROLL
    for (u32 k = 0; RESIDENT_Q_ROTATED && k + 2 < RESIDENT_STEPS; k++)
        q[k] = q[k + 2];
}

/* `last`: no steps follow, scores are masked. */
DEVICE void resident_chunk_dots(struct resident_scores s[RESIDENT_TILES_AT_ONCE],
                                const struct resident_tile t[RESIDENT_TILES_AT_ONCE],
                                const struct frag_a *rows, u32 step, u32 steps,
                                const struct resident_head *head, u32 last)
{
    UNROLL
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++) {
        resident_dots(&s[u], rows, 0, step, steps, head, RESIDENT_KEYS, &t[u], 1, 4);
        if (last)
            resident_mask(&s[u], &t[u]);
    }
}

/* Masked scores of the next tiles; what is not there is not seen. Returns which halves of them live. */
DEVICE u32 resident_chunk(struct resident_walk *w, const struct abi_args *a,
                          const struct resident_head *head, struct frag_a q[RESIDENT_STEPS],
                          struct resident_tile t[RESIDENT_TILES_AT_ONCE],
                          struct resident_scores s[RESIDENT_TILES_AT_ONCE])
{
    u32 lives = resident_tiles(w, head, t);
    UNROLL
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++)
        resident_scores_clear(&s[u]);
    NO_UNROLL
    for (u32 step = 0; step < RESIDENT_STEPS && RESIDENT_PIECES > 1; step += 2) {
        struct frag_a two[2];
        if (RESIDENT_ROLLED)
            resident_query_rows(two, step, 2, a, head, w->row0);
        resident_chunk_dots(s, t, RESIDENT_ROLLED ? two : q, step, 2, head, 0);
        resident_next_steps(q);
    }
    if (RESIDENT_PIECES == 1)
        resident_chunk_dots(s, t, q, 0, RESIDENT_STEPS, head, 1);
    UNROLL
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE && RESIDENT_PIECES > 1; u++)
        resident_mask(&s[u], &t[u]);
    return lives;
}

/* Tiles of wide heads are weighed in a loop, which is text for the compiler saved; the widest have no
   register left for it. */
enum { RESIDENT_TILES_ROLLED = RESIDENT_ROLLED && RESIDENT_STEPS < 16 };

/* The next tile where the first was: no index of the loop picks a register. */
DEVICE void resident_move_tiles(struct resident_scores s[RESIDENT_TILES_AT_ONCE],
                                struct resident_tile t[RESIDENT_TILES_AT_ONCE])
{
    UNROLL
    for (u32 u = 0; RESIDENT_TILES_ROLLED && u + 1 < RESIDENT_TILES_AT_ONCE; u++) {
        s[u] = s[u + 1];
        t[u].col0 = t[u + 1].col0;
    }
}

DEVICE void resident_add_values(struct frag_c (*o)[RESIDENT_CHUNKS],
                                struct resident_scores s[RESIDENT_TILES_AT_ONCE],
                                struct resident_tile t[RESIDENT_TILES_AT_ONCE], u32 lives,
                                const struct abi_args *a, const struct resident_head *head,
                                u32 row0)
{
    UNROLL_BY(RESIDENT_TILES_ROLLED ? 1 : RESIDENT_TILES_AT_ONCE)
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++) {
        const u32 at = RESIDENT_TILES_ROLLED ? 0 : u;
        struct resident_tile now = t[at];
        now.col0 =
            RESIDENT_ALL ? 32 * u : now.col0; /* no register holds it from tile to tile */
        if (resident_lives(lives, u)) {
            resident_drop(&s[at], resident_kept(a, head, row0, &now, 2, 1));
            resident_accumulate(o, &s[at], head, RESIDENT_VALUES, now.col0,
                                resident_lives(lives, u));
        }
        resident_move_tiles(s, t);
    }
}

/* The rows' outputs and LSE (or tau) from sums of weights times values. */
DEVICE void resident_finish(const struct frag_c o[RESIDENT_CHUNKS], const float by[2],
                            const float lse[2], const struct abi_args *a,
                            const struct resident_head *head, u32 row0)
{
    float kept = resident_kept_scale(a), factor[2] = {by[0] * kept, by[1] * kept};
    u32 row = row0 + resident_row();
    resident_store(o, factor, &a->o, head, row0);
    if (quad_lane() == 0 && row < head->exist)
        resident_lse(a, head)[row] = lse[0];
    if (quad_lane() == 0 && row + 8 < head->exist)
        resident_lse(a, head)[row + 8] = lse[1];
}

/* All K and V have arrived, where a barrier may be: heads of up to 128 rows begin on K alone. */
DEVICE void resident_values_arrive(void)
{
    if (RESIDENT_ALL) {
        COPY_ASYNC_WAIT(0);
        SYNC();
    }
}

DEVICE void resident_row_block_sparsegen(const struct abi_args *a,
                                         const struct resident_head *head, u32 row0)
{
    struct resident_walk w = resident_walk_at(&a->forward, head, row0, 1);
    struct frag_a q[RESIDENT_STEPS];
    struct resident_tile t[RESIDENT_TILES_AT_ONCE];
    struct resident_scores s[RESIDENT_TILES_AT_ONCE];
    struct frag_c o[RESIDENT_CHUNKS];
    float tau[2];
    const float by[2] = {1, 1};
    resident_load_q(q, a, head, row0);
    const u32 lives = resident_chunk(&w, a, head, q, t, s);
    UNROLL
    for (u32 k = 0; k < 16 * RESIDENT_TILES_AT_ONCE; k++)
        s[k / 16].at[k / 4 % 4].x[k % 4] *= a->scale < 0 ? -a->scale : a->scale;
    resident_tau(s, lives, a->lambda, tau);
    const float p_scale = sparsegen_scale(a);
    UNROLL
    for (u32 k = 0; k < 16 * RESIDENT_TILES_AT_ONCE; k++) {
        float *x = &s[k / 16].at[k / 4 % 4].x[k % 4];
        *x = sparsegen_p(*x, tau[k / 2 % 2], p_scale);
    }
    resident_values_arrive();
    resident_clear(o);
    resident_add_values(&o, s, t, lives, a, head, row0);
    resident_finish(o, by, tau, a, head, row0);
}

/* What products of Q, whose signs are flipped where the scale is negative, are multiplied by: worked out where
   it is wanted, no register holds it before. */
DEVICE float resident_softmax_scale(const struct abi_args *a)
{
    return magnitude_of(float_of(opt_barrier(bits_of(a->scale)))) * LOG2_E;
}

DEVICE void resident_row_block_softmax(const struct abi_args *a,
                                       const struct resident_head *head, u32 row0)
{
    struct resident_walk w = resident_walk_at(&a->forward, head, row0, 1);
    struct resident_rows r = {{NEGATIVE_INFINITY, NEGATIVE_INFINITY}, {0, 0}};
    struct frag_a q[RESIDENT_STEPS];
    struct resident_tile t[RESIDENT_TILES_AT_ONCE];
    struct resident_scores s[RESIDENT_TILES_AT_ONCE];
    struct frag_c o[RESIDENT_CHUNKS];
    float softmax_scale, alpha[2], by[2], lse[2];
    resident_load_q(q, a, head, row0);
    if (RESIDENT_ALL) {
        const u32 lives = resident_chunk(&w, a, head, q, t, s);
        softmax_scale = resident_softmax_scale(a);
        resident_softmax(s, lives, softmax_scale, &r, alpha);
        resident_values_arrive();
        resident_clear(o);
        resident_add_values(&o, s, t, lives, a, head, row0);
    } else {
        softmax_scale = resident_softmax_scale(a);
        resident_clear(o);
        NO_UNROLL
        for (u32 lives; (lives = resident_chunk(&w, a, head, q, t, s));) {
            resident_softmax(s, lives, softmax_scale, &r, alpha);
            UNROLL
            for (u32 k = 0; k < 4 * RESIDENT_CHUNKS; k++)
                o[k / 4].x[k % 4] *= alpha[k / 2 % 2];
            resident_add_values(&o, s, t, lives, a, head, row0);
        }
    }
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        float sum = quad_sum(r.sum[k]);
        by[k] = sum > 0 ? 1 / sum : 0;
        lse[k] =
            sum > 0 ? (r.row_max[k] * softmax_scale + log2_of(sum)) * LN_2 : NEGATIVE_INFINITY;
    }
    resident_finish(o, by, lse, a, head, row0);
}

/* One head of each team. The warps of a team take its row blocks of 16 rows in turn, all equally often,
   because there are barriers on the way. */
DEVICE void resident_forward(const struct abi_args *a, const struct resident_head *head)
{
    enum { STRIDE = 16 * RESIDENT_FORWARD_WARPS };
    const struct abi_tensor *const keys[] = {&a->k}, *const values[] = {&a->v};
    SYNC(); /* the head before is no longer read */
    resident_fetch(RESIDENT_KEYS, 1, keys, head, RESIDENT_FORWARD_WARPS);
    copy_async_commit();
    resident_fetch(RESIDENT_VALUES, 1, values, head, RESIDENT_FORWARD_WARPS);
    copy_async_commit();
    COPY_ASYNC_WAIT(RESIDENT_ALL ? 1 : 0);
    SYNC();
    NO_UNROLL
    for (u32 first = 0; first < RESIDENT_ROWS; first += STRIDE) {
        u32 row0 = first + 16 * head->warp;
        if (TRANSFORM == ABI_SPARSEGEN)
            resident_row_block_sparsegen(a, head, row0);
        else
            resident_row_block_softmax(a, head, row0);
    }
}

ENTRY_OF(attention_short_forward, RESIDENT_FORWARD_THREADS, RESIDENT_FORWARD_BLOCKS)(ARGS a)
{
    const u32 total = a.slice_batch * a.heads, step = RESIDENT_FORWARD_HEADS;
    NO_UNROLL
    for (u32 at = BLOCK * step; at < total; at += BLOCKS * step) {
        struct resident_head head =
            resident_head_at(&a, at, step, RESIDENT_FORWARD_WARPS, 2 * RESIDENT_OPERAND);
        resident_forward(&a, &head);
    }
}
