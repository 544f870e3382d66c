/* SPDX-License-Identifier: Apache-2.0 */
/* Backward, short sequences: one kernel, one block a head, nothing added by two threads. Q, K, V
   and dO lie in shared memory, and beside them one square of halves that holds first P, then dS. A
   warp has strips of 16 queries where rows are read (P, dS, dQ) and of 16 keys where columns are (dV,
   dK); two strips at a time, where registers allow it, halve what is read from shared memory:

       queries   P, dP, and delta = sum of P dP    P to the square
       keys      dV = P^T dO
       queries   dS = P (dP - delta)               dS to the square     dQ = dS K
       keys      dK = dS^T Q

   For sparsegen dS = (dP - mean of dP over the support) / (1 - lambda) on the support. */
#ifndef MASKC_CUDA_SHORT_BACKWARD_H
#define MASKC_CUDA_SHORT_BACKWARD_H
#include "cuda/short_softmax.h"
#include "cuda/short_store.h"

enum {
    SHORT_STRIPS = SHORT_BACKWARD_STRIPS, /* of a warp: 1 or 2 */
    SHORT_SQUARE_CHUNKS = SHORT_WHOLE / 8,
    SHORT_SQUARE = SHORT_ROWS * SHORT_WHOLE,            /* halves */
    SHORT_HEAD = 4 * SHORT_OPERAND + SHORT_SQUARE + 32, /* the last: a word for each strip */
    /* Both turns as code of their own, where registers are fewest: what one turn alone needs is not held
       in the other. */
    SHORT_APART = SHORT_STEPS > 8 || (SHORT_STEPS > 6 && SHORT_BACKWARD_WARPS > 8),
    /* Chunks of dV and dK at a time: where there are two texts and twice the registers, half of them. */
    SHORT_KEY_CHUNKS = SHORT_STEPS > 8 ? (SHORT_CHUNKS / 2 + 3) / 4 * 4 : SHORT_CHUNKS,
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

DEVICE half_t *short_operand(const struct short_job *j, enum short_operand which)
{
    return j->shared + which * SHORT_OPERAND;
}

DEVICE half_t *short_square(const struct short_job *j)
{
    return j->shared + 4 * SHORT_OPERAND;
}

/* Bit k of the word of a strip of queries: its 16 x 16 entries with keys 16 k .. are in the square. */
DEVICE half_t *short_map(const struct short_job *j, u32 strip)
{
    return j->shared + 4 * SHORT_OPERAND + SHORT_SQUARE + 2 * strip;
}

/* What the lane's two queries of a strip have: base 2 LSE (or tau), delta (or the mean of dP). */
struct short_state {
    float lse[2], delta[2];
};

/* Two steps of the warp's rows of one operand times the tile's columns of another. A strip that sees
   nothing of the tile may lie beyond the operand: any rows do for it. */
DEVICE void short_product(struct short_scores *s, const struct short_job *j,
                          enum short_operand rows, u32 row0, enum short_operand columns,
                          u32 step, const struct short_tile *t)
{
    struct frag_a two[2 * SHORT_STRIPS];
    UNROLL
    for (u32 m = 0; m < SHORT_STRIPS; m++) {
        u32 row = SHORT_STRIPS == 1 || t[m].any ? row0 + 16 * m : 0;
        short_load_rows(&two[2 * m], short_operand(j, rows), row, 2 * step);
        if (step + 1 < SHORT_STEPS)
            short_load_rows(&two[2 * m + 1], short_operand(j, rows), row, 2 * step + 2);
    }
    short_dots(s, two, 2, step, short_operand(j, columns), t, SHORT_STRIPS);
}

DEVICE void short_products(struct short_scores *s, const struct short_job *j,
                           enum short_operand rows, u32 row0, enum short_operand columns,
                           const struct short_tile *t)
{
    UNROLL
    for (u32 m = 0; m < SHORT_STRIPS; m++)
        short_scores_clear(&s[m]);
    if (SHORT_ROLLED) {
        NO_UNROLL
        for (u32 step = 0; step < SHORT_STEPS; step += 2)
            short_product(s, j, rows, row0, columns, step, t);
    } else {
        UNROLL
        for (u32 step = 0; step < SHORT_STEPS; step += 2)
            short_product(s, j, rows, row0, columns, step, t);
    }
}

/* From products to P and dP of one strip; P is 0 where an entry is not seen, dP where it is dropped.
   The factor of dP, delta and dS where entries are kept is left to what is stored. */
DEVICE void short_slopes(struct short_scores *p, struct short_scores *dp,
                         const struct abi_args *a, const struct short_tile *t,
                         const struct short_state *state, u32 kept)
{
    const float scale = TRANSFORM == ABI_SPARSEGEN ? a->scale : a->scale * SHORT_LOG2_E;
    const float slope = sparsegen_slope(a);
    UNROLL
    for (u32 k = 0; k < 16; k++) {
        float *x = &p->at[k / 4].x[k % 4], *y = &dp->at[k / 4].x[k % 4];
        float score = *x * scale, lse = state->lse[k / 2 % 2];
        u32 seen = short_sees(t, k / 4, k % 4);
        if (TRANSFORM == ABI_SPARSEGEN)
            *x = seen ? sparsegen_weight(score, lse, slope) : 0;
        else
            *x = seen ? exp2_of(score - lse) : 0;
        if (DROPOUT)
            *y = kept >> k & 1 ? *y : 0;
    }
}

/* The live parts of a strip to the square. */
DEVICE void short_stage(const struct short_scores *s, const struct short_job *j, u32 row0,
                        const struct short_tile *t)
{
    half_t *square = short_square(j);
    UNROLL
    for (u32 f = 0; f < 4; f++) {
        u32 chunk = t->col0 / 8 + f;
        half_t *at = square + 2 * short_pair() +
                     short_place(row0, short_row(), chunk, SHORT_SQUARE_CHUNKS);
        const struct frag_c *c = &s->at[f];
        if (!short_live(t, f & 2, 2))
            continue;
        if (!SHORT_CUT || row0 + short_row() < SHORT_ROWS)
            shared_put_u32(at, half_pack(c->x[0], c->x[1]));
        if (!SHORT_CUT || row0 + short_row() + 8 < SHORT_ROWS)
            shared_put_u32(at + 8 * SHORT_WHOLE, half_pack(c->x[2], c->x[3]));
    }
}

/* sum += what a strip's entries at a tile give to the state of its queries; count: of the support. */
DEVICE void short_add_state(float sum[2], float count[2], const struct short_scores *p,
                            const struct short_scores *dp)
{
    UNROLL
    for (u32 k = 0; k < 16; k++) {
        float x = p->at[k / 4].x[k % 4], y = dp->at[k / 4].x[k % 4];
        if (TRANSFORM == ABI_SPARSEGEN) {
            sum[k / 2 % 2] += x > 0 ? y : 0;
            count[k / 2 % 2] += x > 0 ? 1 : 0;
        } else {
            sum[k / 2 % 2] += x * y;
        }
    }
}

DEVICE float short_mean(float sum, float count)
{
    sum = short_quad_sum(sum);
    if (TRANSFORM != ABI_SPARSEGEN)
        return sum;
    count = short_quad_sum(count);
    return count > 0 ? sum / count : 0;
}

/* dS of a strip from P and dP, in place of dP; of sparsegen times 1 - lambda. */
DEVICE void short_turn(struct short_scores *ds, const struct short_scores *p,
                       const struct short_state *state)
{
    UNROLL
    for (u32 k = 0; k < 16; k++) {
        float x = p->at[k / 4].x[k % 4], *y = &ds->at[k / 4].x[k % 4];
        *y = score_gradient(x, *y, state->delta[k / 2 % 2]);
    }
}

DEVICE void short_store_strips(struct frag_c (*sums)[SHORT_CHUNKS], float scale,
                               const struct abi_tensor *to, const struct short_job *j, u32 row0)
{
    const float by[2] = {scale, scale};
    UNROLL
    for (u32 m = 0; m < SHORT_STRIPS; m++)
        short_store(sums[m], by, to, j, row0 + 16 * m);
}

/* What the first turn collects beside delta: entries of the support, and which 16 x 16 parts of the square
   there are. */
struct short_sums {
    float count[2];
    u32 map;
};

DEVICE void short_end_turn(const struct short_sums *sums, const struct short_job *j, u32 row0,
                           struct short_state *state)
{
    UNROLL
    for (u32 m = 0; m < SHORT_STRIPS; m++) {
        state[m].delta[0] = short_mean(state[m].delta[0], sums[m].count[0]);
        state[m].delta[1] = short_mean(state[m].delta[1], sums[m].count[1]);
        if (short_lane() == 0)
            shared_put_u32(short_map(j, row0 / 16 + m), sums[m].map);
    }
}

/* Turn 0: P to the square, and the state of the queries. Turn 1: dS to the square, and dQ. One text
   for both, since most of it is the same. */
DEVICE void short_queries(const struct abi_args *a, const struct short_job *j, u32 row0,
                          u32 turn, struct short_state *state)
{
    struct short_walk w = short_walk_at(&a->forward, j, row0);
    struct short_tile t[SHORT_STRIPS];
    struct short_scores p[SHORT_STRIPS], dp[SHORT_STRIPS];
    struct short_sums sums[SHORT_STRIPS];
    struct frag_c d_q[SHORT_STRIPS][SHORT_CHUNKS];
    UNROLL
    for (u32 m = 0; m < SHORT_STRIPS; m++) {
        short_clear(d_q[m]);
        sums[m].count[0] = sums[m].count[1] = 0;
        sums[m].map = 0;
    }
    while (short_next(&w, j, t, SHORT_STRIPS)) {
        short_products(p, j, SHORT_Q, row0, SHORT_K, t);
        short_products(dp, j, SHORT_D_O, row0, SHORT_V, t);
        UNROLL
        for (u32 m = 0; m < SHORT_STRIPS; m++) {
            u32 kept = short_kept(a, j, row0 + 16 * m, &t[m]);
            short_slopes(&p[m], &dp[m], a, &t[m], &state[m], kept);
            if (turn) {
                short_turn(&dp[m], &p[m], &state[m]);
            } else {
                short_add_state(state[m].delta, sums[m].count, &p[m], &dp[m]);
                short_drop(&p[m], kept);
                dp[m] = p[m];
            }
            short_stage(&dp[m], j, row0 + 16 * m, &t[m]);
            sums[m].map |= (short_live(&t[m], 0, 2) | short_live(&t[m], 2, 2) << 1)
                           << t[m].col0 / 16;
        }
        if (turn)
            short_accumulate(d_q, dp, short_operand(j, SHORT_K), t, SHORT_STRIPS);
    }
    if (turn)
        short_store_strips(d_q, slope_scale(a) * short_kept_scale(a), &a->d_q, j, row0);
    else
        short_end_turn(sums, j, row0, state);
}

/* Zero for queries that are not there, of 16: they were loaded as the last one. */
DEVICE void short_cut_queries(struct frag_a *a, u32 strip)
{
    UNROLL
    for (u32 k = 0; SHORT_CUT && k < 4; k++)
        if (16 * strip + 8 * (k / 2) + 2 * short_pair() >= SHORT_ROWS)
            a->x[k] = 0;
}

/* The square's columns of the warp's keys, transposed, times chunks of the rows of an operand. */
DEVICE void short_gather_chunks(struct frag_c (*sums)[SHORT_CHUNKS], u32 first,
                                const struct short_job *j, u32 key0, enum short_operand which)
{
    u32 lane = short_lane();
    UNROLL
    for (u32 m = 0; m < SHORT_STRIPS; m++)
        short_clear(sums[m]);
    NO_UNROLL
    for (u32 strip = 0; strip < SHORT_WHOLE / 16; strip++) {
        struct frag_a rows[SHORT_STRIPS];
        u32 on = shared_get_u32(short_map(j, strip)) >> key0 / 16 & ((1u << SHORT_STRIPS) - 1);
        if (!on)
            continue;
        UNROLL
        for (u32 m = 0; m < SHORT_STRIPS; m++) {
            u32 chunk = key0 / 8 + 2 * m + lane / 8 % 2;
            u32 at = short_place_there(16 * strip + 8 * (lane / 16), lane % 8, chunk,
                                       SHORT_SQUARE_CHUNKS);
            rows[m].x[0] = rows[m].x[1] = rows[m].x[2] = rows[m].x[3] = 0;
            if (SHORT_STRIPS == 1 || on >> m & 1)
                matrix_load4_transposed(rows[m].x, short_square(j) + at);
            short_cut_queries(&rows[m], strip);
        }
        short_apply_part(sums, first, SHORT_KEY_CHUNKS, rows, SHORT_STRIPS,
                         short_operand(j, which), 16 * strip);
    }
}

/* dV or dK of the warp's keys. */
DEVICE void short_gather_keys(const struct short_job *j, u32 key0, enum short_operand which,
                              const struct abi_tensor *to, float scale)
{
    const float by[2] = {scale, scale};
    NO_UNROLL
    for (u32 first = 0; first < SHORT_CHUNKS; first += SHORT_KEY_CHUNKS) {
        struct frag_c sums[SHORT_STRIPS][SHORT_CHUNKS];
        short_gather_chunks(sums, first, j, key0, which);
        UNROLL
        for (u32 m = 0; m < SHORT_STRIPS; m++)
            short_store_part(sums[m], first, SHORT_KEY_CHUNKS, by, to, j, key0 + 16 * m);
    }
}

DEVICE void short_fetch_all(const struct abi_args *a, const struct short_job *j)
{
    short_fetch(short_operand(j, SHORT_Q), &a->q, j, SHORT_BACKWARD_WARPS);
    short_fetch(short_operand(j, SHORT_K), &a->k, j, SHORT_BACKWARD_WARPS);
    short_fetch(short_operand(j, SHORT_V), &a->v, j, SHORT_BACKWARD_WARPS);
    short_fetch(short_operand(j, SHORT_D_O), &a->d_o, j, SHORT_BACKWARD_WARPS);
    copy_async_commit();
}

/* Queries, then keys. */
DEVICE void short_take_turn(const struct abi_args *a, const struct short_job *j, u32 row0,
                            u32 turn, struct short_state *state)
{
    float kept = short_kept_scale(a);
    SYNC(); /* all has arrived; the square is no longer read */
    short_queries(a, j, row0, turn, state);
    SYNC();
    short_gather_keys(j, row0, turn ? SHORT_Q : SHORT_D_O, turn ? &a->d_k : &a->d_v,
                      turn ? slope_scale(a) * kept : kept);
}

/* One head of each team. */
DEVICE void short_backward(const struct abi_args *a, const struct short_job *j)
{
    struct short_state state[SHORT_STRIPS];
    u32 row0 = 16 * SHORT_STRIPS * j->warp;
    float base = TRANSFORM == ABI_SPARSEGEN ? 1 : SHORT_LOG2_E;
    SYNC(); /* the head before is no longer read */
    short_fetch_all(a, j);
    UNROLL
    for (u32 k = 0; k < 2 * SHORT_STRIPS; k++) {
        u32 row = row0 + short_row() + 8 * k;
        state[k / 2].lse[k % 2] = row < j->length ? short_lse(a, j)[row] * base : 0;
        state[k / 2].delta[k % 2] = 0;
    }
    COPY_ASYNC_WAIT(0);
    if (SHORT_APART) {
        UNROLL
        for (u32 turn = 0; turn < 2; turn++)
            short_take_turn(a, j, row0, turn, state);
    } else {
        NO_UNROLL
        for (u32 turn = 0; turn < 2; turn++)
            short_take_turn(a, j, row0, turn, state);
    }
}

#endif
