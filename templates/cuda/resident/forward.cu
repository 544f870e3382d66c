/* SPDX-License-Identifier: Apache-2.0 */
/* Resident family, forward: a block has K and V of a whole head in shared memory, a warp 16 rows of Q in registers.

       resident_fetch_keys, _values  the head's K and V, once
       for each warp tile of 16 queries:
           resident_direct           its mask, where n <= 128
           resident_load_q           copied with K where that leaves as many blocks on a processor
           for each chunk of column tiles (one chunk where n <= 128, else two tiles each):
               resident_masked_qk        S = Q K^T, -inf where the row does not see the key
               resident_online_softmax   m' = max(m, S), alpha = 2^(m - m'), P = 2^(S - m'), l = alpha l + sum P
               resident_rescale          O = alpha O, if there are several chunks
               resident_compute_pv       O = O + P V, with dropout on P
           resident_epilogue             O / l, LSE = m + log l

   Where all of a row's scores are in registers, K of the next head is copied while the last warp tiles multiply by V.

   Sparsegen (n <= 128) finds tau from all scores of a row and computes P = (S - tau) / (1 - lambda) instead. */
#include "cuda/resident/direct.h"
#include "cuda/resident/forward_copies.h"
#include "cuda/resident/store.h"

typedef char resident_sparsegen_fits[TRANSFORM != ABI_SPARSEGEN || RESIDENT_ALL ? 1 : -1];
typedef char
    resident_queries_fit[!RESIDENT_Q_COPIED || (RESIDENT_ALL && !RESIDENT_ROLLED) ? 1 : -1];

/* The next column tiles, where not all are held at once. Returns which of their halves have an entry (resident_lives),
   0 at the end. */
DEVICE u32 resident_next_tiles(struct resident_walk *w, const struct resident_head *head,
                               struct resident_tile t[RESIDENT_TILES_AT_ONCE])
{
    struct resident_tile next;
    u32 count = 0, lives = 0;
    UNROLL
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++)
        t[u].col0 = t[u].seen = t[u].any = 0;
    NO_UNROLL
    while (count < RESIDENT_TILES_AT_ONCE && resident_next(w, head, &next)) {
        UNROLL
        for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++) {
            const u32 here = count == u;
            t[u].col0 = here ? next.col0 : t[u].col0;
            t[u].seen = here ? next.seen : t[u].seen;
            t[u].any = here ? next.any : t[u].any;
        }
        lives |= resident_halves(&next) << 2 * count;
        count++;
    }
    return lives;
}

/* Rows of Q; negated where the scale is negative, so that the scale counts as positive and the largest score is
   that of the largest product. */
DEVICE void resident_query_rows(struct frag_a *rows, u32 step, u32 count,
                                const struct abi_args *a, const struct resident_head *head,
                                u32 row0)
{
    const u32 flip = a->scale < 0 ? 0x80008000u : 0;
    if (!RESIDENT_Q_COPIED)
        resident_rows_of(rows, step, count, &a->q, head, row0);
    UNROLL
    for (u32 k = 0; RESIDENT_Q_COPIED && k < count; k++) {
        rows[k].x[0] = rows[k].x[1] = rows[k].x[2] = rows[k].x[3] = 0;
        if (row0 < head->length) /* the same for the whole warp: beyond it nothing was copied */
            resident_load_rows(&rows[k], head, RESIDENT_QUERIES, row0, 2 * (step + k));
    }
    UNROLL
    for (u32 k = 0; k < 4 * count; k++)
        rows[k / 4].x[k % 4] ^= flip;
}

/* Wide heads loop over steps of the head, two at a time, since unrolled code compiles slowly. Q's steps then rotate
   through the registers of the first two, which is possible where there is one chunk. */
enum {
    RESIDENT_Q_ROTATED = RESIDENT_ALL && RESIDENT_STEPS > 6 && !RESIDENT_ROLLED,
    RESIDENT_PIECES =
        RESIDENT_Q_ROTATED || RESIDENT_ROLLED ? 2 : 1, /* of the loop over steps; 2: or more */
};

DEVICE void resident_next_steps(struct frag_a q[RESIDENT_STEPS])
{
    UNROLL
    for (u32 k = 0; RESIDENT_Q_ROTATED && k + 2 < RESIDENT_STEPS; k++)
        q[k] = q[k + 2];
}

/* S += Q K^T over `steps` steps of the head; after the last ones the mask is applied, tile by tile. */
DEVICE void resident_qk_steps(struct resident_scores s[RESIDENT_TILES_AT_ONCE],
                              const struct resident_tile t[RESIDENT_TILES_AT_ONCE],
                              const struct frag_a *rows, u32 step, u32 steps,
                              const struct resident_head *head, u32 last)
{
    UNROLL
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++) {
        const struct resident_row_operands q = {rows, step, steps};
        resident_dots(&s[u], q, head, RESIDENT_KEYS, &t[u], 4);
        if (last)
            resident_apply_mask(&s[u], &t[u]);
    }
}

/* Masked scores of column tiles. */
DEVICE void resident_masked_qk(struct resident_scores s[RESIDENT_TILES_AT_ONCE],
                               const struct resident_tile t[RESIDENT_TILES_AT_ONCE],
                               struct frag_a q[RESIDENT_STEPS], const struct abi_args *a,
                               const struct resident_head *head, u32 row0)
{
    UNROLL
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE; u++)
        resident_scores_clear(&s[u]);
    NO_UNROLL
    for (u32 step = 0; step < RESIDENT_STEPS && RESIDENT_PIECES > 1; step += 2) {
        struct frag_a two[2];
        if (RESIDENT_ROLLED)
            resident_query_rows(two, step, 2, a, head, row0);
        resident_qk_steps(s, t, RESIDENT_ROLLED ? two : q, step, 2, head, 0);
        resident_next_steps(q);
    }
    if (RESIDENT_PIECES == 1)
        resident_qk_steps(s, t, q, 0, RESIDENT_STEPS, head, 1);
    UNROLL
    for (u32 u = 0; u < RESIDENT_TILES_AT_ONCE && RESIDENT_PIECES > 1; u++)
        resident_apply_mask(&s[u], &t[u]);
}

/* Wide heads take P V tile by tile in a loop, since unrolled code compiles slowly; the widest have no register for
   that. */
enum { RESIDENT_TILES_ROLLED = RESIDENT_ROLLED && RESIDENT_STEPS < 16 };

/* Moves each tile one place down: a constant index keeps the tiles in registers. */
DEVICE void resident_move_tiles(struct resident_scores s[RESIDENT_TILES_AT_ONCE],
                                struct resident_tile t[RESIDENT_TILES_AT_ONCE])
{
    UNROLL
    for (u32 u = 0; RESIDENT_TILES_ROLLED && u + 1 < RESIDENT_TILES_AT_ONCE; u++) {
        s[u] = s[u + 1];
        t[u].col0 = t[u + 1].col0;
    }
}

DEVICE void resident_compute_pv(struct frag_c (*o)[RESIDENT_CHUNKS],
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

/* Writes O times `by`, and LSE (or tau). */
DEVICE void resident_store_rows(const struct frag_c o[RESIDENT_CHUNKS], const float by[2],
                                const float lse[2], const struct abi_args *a,
                                const struct resident_head *head, u32 row0)
{
    float kept = resident_kept_scale(a), scale[2] = {by[0] * kept, by[1] * kept};
    u32 row = row0 + resident_row();
    resident_store(o, scale, &a->o, head, row0);
    if (quad_lane() == 0 && row < head->exist)
        resident_lse(a, head)[row] = lse[0];
    if (quad_lane() == 0 && row + 8 < head->exist)
        resident_lse(a, head)[row + 8] = lse[1];
}

/* Waits for K, and loads Q of the warp's rows where registers hold it; else resident_masked_qk reads it for each chunk. Q is
   loaded from device memory before the wait, from shared memory after it. */
DEVICE void resident_load_q(struct frag_a q[RESIDENT_STEPS], const struct abi_args *a,
                            const struct resident_head *head, u32 row0,
                            struct resident_round round)
{
    if (RESIDENT_Q_COPIED)
        resident_wait_for_k(round);
    if (!RESIDENT_ROLLED)
        resident_query_rows(q, 0, RESIDENT_STEPS, a, head, row0);
    if (!RESIDENT_Q_COPIED)
        resident_wait_for_k(round);
}

DEVICE void resident_row_block_sparsegen(const struct abi_args *a,
                                         const struct resident_head *head, u32 row0,
                                         struct resident_round round)
{
    struct frag_a q[RESIDENT_STEPS];
    struct resident_tile t[RESIDENT_TILES_AT_ONCE];
    struct resident_scores s[RESIDENT_TILES_AT_ONCE];
    struct frag_c o[RESIDENT_CHUNKS];
    float tau[2];
    const float by[2] = {1, 1};
    u32 code[RESIDENT_TILES_AT_ONCE];
    resident_codes(code, &a->forward, head, row0);
    const u32 lives = resident_direct(t, code, &a->forward, head, row0);
    resident_load_q(q, a, head, row0, round);
    resident_masked_qk(s, t, q, a, head, row0);
    resident_next_keys(round);
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
    resident_wait_for_v(round);
    resident_clear(o);
    resident_compute_pv(&o, s, t, lives, a, head, row0);
    resident_store_rows(o, by, tau, a, head, row0);
}

/* The factor of Q K^T, positive and to base 2. An optimisation barrier keeps the compiler from computing it early,
   which would take a register. */
DEVICE float resident_softmax_scale(const struct abi_args *a)
{
    return magnitude_of(float_of(opt_barrier(bits_of(a->scale)))) * LOG2_E;
}

/* O times alpha; alpha of the lane's two rows. */
DEVICE void resident_rescale(struct frag_c o[RESIDENT_CHUNKS], const float alpha[2])
{
    UNROLL
    for (u32 k = 0; k < 4 * RESIDENT_CHUNKS; k++)
        o[k / 4].x[k % 4] *= alpha[k / 2 % 2];
}

/* O / sum and LSE; a row that saw nothing gets 0 and -inf. */
DEVICE void resident_epilogue(const struct frag_c o[RESIDENT_CHUNKS],
                              const struct resident_rows *r, float softmax_scale,
                              const struct abi_args *a, const struct resident_head *head,
                              u32 row0)
{
    float by[2], lse[2];
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        float sum = quad_sum(r->sum[k]);
        by[k] = saw_nothing(sum) ? 0 : 1 / sum;
        lse[k] = saw_nothing(sum) ? NEGATIVE_INFINITY
                                  : (r->row_max[k] * softmax_scale + log2_of(sum)) * LN_2;
    }
    resident_store_rows(o, by, lse, a, head, row0);
}

/* All scores of the rows at once. */
DEVICE void resident_row_block_whole(const struct abi_args *a, const struct resident_head *head,
                                     u32 row0, struct resident_round round)
{
    struct resident_rows r = {{NEGATIVE_INFINITY, NEGATIVE_INFINITY}, {0, 0}};
    struct frag_a q[RESIDENT_STEPS];
    struct resident_tile t[RESIDENT_TILES_AT_ONCE];
    struct resident_scores s[RESIDENT_TILES_AT_ONCE];
    struct frag_c o[RESIDENT_CHUNKS];
    float alpha[2];
    u32 code[RESIDENT_TILES_AT_ONCE];
    resident_codes(code, &a->forward, head, row0);
    const u32 lives = resident_direct(t, code, &a->forward, head, row0);
    resident_load_q(q, a, head, row0, round);
    resident_masked_qk(s, t, q, a, head, row0);
    resident_next_keys(round);
    const float softmax_scale = resident_softmax_scale(a);
    resident_online_softmax(s, lives, softmax_scale, &r, alpha);
    resident_wait_for_v(round);
    resident_clear(o);
    resident_compute_pv(&o, s, t, lives, a, head, row0);
    resident_epilogue(o, &r, softmax_scale, a, head, row0);
}

/* A chunk of column tiles after the other. */
DEVICE void resident_row_block_chunks(const struct abi_args *a,
                                      const struct resident_head *head, u32 row0,
                                      struct resident_round round)
{
    struct resident_walk w = resident_walk_at(&a->forward, head, row0, 1);
    struct resident_rows r = {{NEGATIVE_INFINITY, NEGATIVE_INFINITY}, {0, 0}};
    struct frag_a q[RESIDENT_STEPS];
    struct resident_tile t[RESIDENT_TILES_AT_ONCE];
    struct resident_scores s[RESIDENT_TILES_AT_ONCE];
    struct frag_c o[RESIDENT_CHUNKS];
    float alpha[2];
    resident_load_q(q, a, head, row0, round);
    const float softmax_scale = resident_softmax_scale(a);
    resident_clear(o);
    NO_UNROLL
    for (u32 lives; (lives = resident_next_tiles(&w, head, t));) {
        resident_masked_qk(s, t, q, a, head, row0);
        resident_online_softmax(s, lives, softmax_scale, &r, alpha);
        resident_rescale(o, alpha);
        resident_compute_pv(&o, s, t, lives, a, head, row0);
    }
    resident_epilogue(o, &r, softmax_scale, a, head, row0);
}

/* One head of each warp group. Its warps take 16 rows each in turn, all equally often, since there are barriers
   on the way. */
DEVICE void resident_forward(const struct abi_args *a, const struct resident_head *head,
                             u32 next, u32 is_first)
{
    SYNC(); /* the head before is no longer read */
    if (!RESIDENT_ALL || is_first)
        resident_fetch_keys(a, head);
    resident_fetch_values(a, head);
    NO_UNROLL
    for (u32 first = 0; first < RESIDENT_ROWS; first += RESIDENT_STRIDE) {
        const u32 row0 = first + 16 * head->warp;
        const struct resident_round round = {a, first, next};
        if (TRANSFORM == ABI_SPARSEGEN)
            resident_row_block_sparsegen(a, head, row0, round);
        else if (RESIDENT_ALL)
            resident_row_block_whole(a, head, row0, round);
        else
            resident_row_block_chunks(a, head, row0, round);
    }
}

ENTRY_OF(attention_resident_forward, RESIDENT_FORWARD_THREADS, RESIDENT_FORWARD_BLOCKS)(ARGS a)
{
    const u32 total = a.slice_batch * a.heads, step = BLOCKS * RESIDENT_FORWARD_HEADS;
    const u32 begin = BLOCK * RESIDENT_FORWARD_HEADS;
    NO_UNROLL
    for (u32 at = begin; at < total; at += step) {
        const struct resident_head head = resident_forward_head(&a, at);
        resident_forward(&a, &head, at + step, at == begin);
    }
}
