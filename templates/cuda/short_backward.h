/* SPDX-License-Identifier: Apache-2.0 */
/* Backward, short sequences: one kernel, one block a head, nothing added by two threads. Q, K, V
   and dO lie in shared memory, and beside them one square of halves that holds first P, then dS. A
   warp has 16 queries where rows are read (P, dS, dQ) and 16 keys where columns are (dV, dK):

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
    SHORT_SQUARE_CHUNKS = SHORT_ROWS / 8,
    SHORT_SQUARE = SHORT_ROWS * SHORT_ROWS, /* halves */
    SHORT_HEAD = 4 * SHORT_OPERAND + SHORT_SQUARE + 32, /* the last: a word for each strip */
};

typedef char short_backward_fits
    [SHORT_BACKWARD_SHARED >= SHORT_BACKWARD_HEADS * SHORT_HEAD * 2 ? 1 : -1];
typedef char short_warp_has_a_strip[SHORT_BACKWARD_WARPS * 16 == SHORT_ROWS ? 1 : -1];

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

/* What the lane's two queries have: base 2 LSE (or tau), delta (or the mean of dP). */
struct short_state {
    float lse[2], delta[2];
};

/* Two steps of the warp's rows of one operand times the tile's columns of another. */
DEVICE void short_product(struct short_scores *s, const struct short_job *j,
                          enum short_operand rows, u32 row0, enum short_operand columns, u32 step,
                          const struct short_tile *t)
{
    struct frag_a two[2];
    short_load_rows(&two[0], short_operand(j, rows), row0, 2 * step);
    if (step + 1 < SHORT_STEPS)
        short_load_rows(&two[1], short_operand(j, rows), row0, 2 * step + 2);
    short_dots(s, two, step, short_operand(j, columns), t);
}

DEVICE void short_products(struct short_scores *s, const struct short_job *j,
                           enum short_operand rows, u32 row0, enum short_operand columns,
                           const struct short_tile *t)
{
    short_scores_clear(s);
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

/* P and dP of the warp's queries at a tile; P is 0 where an entry is not seen, dP where it is dropped.
   The factor of dP, delta and dS where entries are kept is left to what is stored. Returns which
   are kept. */
DEVICE u32 short_slopes(struct short_scores *p, struct short_scores *dp, const struct abi_args *a,
                        const struct short_job *j, u32 row0, const struct short_tile *t,
                        const struct short_state *state)
{
    float scale = TRANSFORM == ABI_SPARSEGEN ? a->scale : a->scale * SHORT_LOG2_E;
    u32 kept = short_kept(a, j, row0, t);
    short_products(p, j, SHORT_Q, row0, SHORT_K, t);
    short_products(dp, j, SHORT_D_O, row0, SHORT_V, t);
    UNROLL
    for (u32 k = 0; k < 16; k++) {
        float *x = &p->at[k / 4].x[k % 4], *y = &dp->at[k / 4].x[k % 4];
        float score = *x * scale, lse = state->lse[k / 2 % 2];
        u32 seen = short_sees(t, k / 4, k % 4);
        if (TRANSFORM == ABI_SPARSEGEN)
            *x = seen ? short_sparsegen(score, lse, a->lambda) : 0;
        else
            *x = seen ? exp2_of(score - lse) : 0;
        if (DROPOUT)
            *y = kept >> k & 1 ? *y : 0;
    }
    return kept;
}

/* The live parts of the warp's 16 rows to the square. */
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
        shared_put_u32(at, half_pack(c->x[0], c->x[1]));
        shared_put_u32(at + 8 * SHORT_ROWS, half_pack(c->x[2], c->x[3]));
    }
}

/* P to the square, which 16 x 16 parts it has, and the state of the queries. */
DEVICE void short_weigh_queries(const struct abi_args *a, const struct short_job *j, u32 row0,
                                struct short_state *state)
{
    struct short_walk w = short_walk_at(&a->forward, j, row0);
    struct short_tile t;
    struct short_scores p, dp;
    float sum[2] = {0, 0}, count[2] = {0, 0};
    u32 map = 0;
    while (short_next(&w, j, &t)) {
        u32 kept = short_slopes(&p, &dp, a, j, row0, &t, state);
        UNROLL
        for (u32 k = 0; k < 16; k++) {
            float x = p.at[k / 4].x[k % 4], y = dp.at[k / 4].x[k % 4];
            if (TRANSFORM == ABI_SPARSEGEN) {
                sum[k / 2 % 2] += x > 0 ? y : 0;
                count[k / 2 % 2] += x > 0 ? 1 : 0;
            } else {
                sum[k / 2 % 2] += x * y;
            }
        }
        short_drop(&p, kept);
        short_stage(&p, j, row0, &t);
        map |= (short_live(&t, 0, 2) | short_live(&t, 2, 2) << 1) << t.col0 / 16;
    }
    UNROLL
    for (u32 row = 0; row < 2; row++) {
        sum[row] = short_quad_sum(sum[row]);
        if (TRANSFORM == ABI_SPARSEGEN) {
            count[row] = short_quad_sum(count[row]);
            sum[row] = count[row] > 0 ? sum[row] / count[row] : 0;
        }
        state->delta[row] = sum[row];
    }
    if (short_lane() == 0)
        shared_put_u32(short_map(j, j->warp), map);
}

/* dS to the square, and dQ. */
DEVICE void short_turn_queries(const struct abi_args *a, const struct short_job *j, u32 row0,
                               const struct short_state *state)
{
    struct short_walk w = short_walk_at(&a->forward, j, row0);
    struct short_tile t;
    struct short_scores p, ds;
    struct frag_c d_q[SHORT_CHUNKS];
    const float by[2] = {a->scale * short_kept_scale(a), a->scale * short_kept_scale(a)};
    short_clear(d_q);
    while (short_next(&w, j, &t)) {
        short_slopes(&p, &ds, a, j, row0, &t, state);
        UNROLL
        for (u32 k = 0; k < 16; k++) {
            float x = p.at[k / 4].x[k % 4], *y = &ds.at[k / 4].x[k % 4];
            float slope = *y - state->delta[k / 2 % 2];
            if (TRANSFORM == ABI_SPARSEGEN)
                *y = x > 0 ? slope / (1 - a->lambda) : 0;
            else
                *y = x * slope;
        }
        short_stage(&ds, j, row0, &t);
        short_accumulate(d_q, &ds, short_operand(j, SHORT_K), &t);
    }
    short_store(d_q, by, &a->d_q, j, row0);
}

/* The square's 16 columns of keys, transposed, times the rows of an operand: dV or dK. */
DEVICE void short_gather_keys(const struct short_job *j, enum short_operand which,
                              const struct abi_tensor *to, float scale)
{
    struct frag_c sums[SHORT_CHUNKS];
    const float by[2] = {scale, scale};
    u32 lane = short_lane();
    short_clear(sums);
    NO_UNROLL
    for (u32 strip = 0; strip < SHORT_BACKWARD_WARPS; strip++) {
        struct frag_a rows;
        if (!(shared_get_u32(short_map(j, strip)) >> j->warp & 1))
            continue;
        u32 query = 16 * strip + 8 * (lane / 16), chunk = 2 * j->warp + lane / 8 % 2;
        matrix_load4_transposed(rows.x,
                                short_square(j) + short_place(query, lane % 8, chunk,
                                                              SHORT_SQUARE_CHUNKS));
        UNROLL
        for (u32 c = 0; c < SHORT_CHUNKS; c += 2) {
            u32 r[4];
            short_load_values(r, short_operand(j, which), 16 * strip, c);
            mma_16816(&sums[c], &rows, r[0], r[1]);
            mma_16816(&sums[c + 1], &rows, r[2], r[3]);
        }
    }
    short_store(sums, by, to, j, 16 * j->warp);
}

DEVICE void short_fetch_all(const struct abi_args *a, const struct short_job *j)
{
    short_fetch(short_operand(j, SHORT_Q), &a->q, j, SHORT_BACKWARD_WARPS);
    short_fetch(short_operand(j, SHORT_K), &a->k, j, SHORT_BACKWARD_WARPS);
    short_fetch(short_operand(j, SHORT_V), &a->v, j, SHORT_BACKWARD_WARPS);
    short_fetch(short_operand(j, SHORT_D_O), &a->d_o, j, SHORT_BACKWARD_WARPS);
    copy_async_commit();
}

/* One head of each team. */
DEVICE void short_backward(const struct abi_args *a, const struct short_job *j)
{
    struct short_state state;
    u32 row0 = 16 * j->warp;
    float base = TRANSFORM == ABI_SPARSEGEN ? 1 : SHORT_LOG2_E;
    SYNC(); /* the head before is no longer read */
    short_fetch_all(a, j);
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        u32 row = row0 + short_row() + 8 * k;
        state.lse[k] = row < j->length ? short_lse(a, j)[row] * base : 0;
    }
    COPY_ASYNC_WAIT(0);
    SYNC();
    short_weigh_queries(a, j, row0, &state);
    SYNC();
    short_gather_keys(j, SHORT_D_O, &a->d_v, short_kept_scale(a));
    SYNC();
    short_turn_queries(a, j, row0, &state);
    SYNC();
    short_gather_keys(j, SHORT_Q, &a->d_k, a->scale * short_kept_scale(a));
}

#endif
