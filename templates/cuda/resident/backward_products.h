/* SPDX-License-Identifier: Apache-2.0 */
/* Resident family, backward: what pass 1 computes from. LSE and the estimate of delta of a warp's queries, their
   rows of Q and dO, and the products S = Q K^T and dP = dO V^T over a column tile. */
#ifndef MASKC_CUDA_RESIDENT_BACKWARD_PRODUCTS_H
#define MASKC_CUDA_RESIDENT_BACKWARD_PRODUCTS_H
#include "cuda/common/transform.h"
#include "cuda/resident/ds_registers.h"

enum {
    /* Warp tiles of queries at a time: one where the registers for dS leave no space for two. */
    RESIDENT_TOGETHER = RESIDENT_TILES > 4 ? 1 : RESIDENT_ROW_BLOCKS,
    /* Wide heads with many column tiles: a loop over steps, and nothing is read before it is used. */
    RESIDENT_TIGHT = RESIDENT_TILES > 4 && RESIDENT_STEPS > 4,
    /* Where registers are fewest, addresses are computed again from row0 for each use. */
    RESIDENT_ROW0_RECOMPUTED = RESIDENT_TIGHT || (RESIDENT_STEPS == 3 && DTYPE == ABI_F16),
    /* Where registers allow it, Q and dO are read once and not for each column tile. */
    RESIDENT_ROWS_IN_REGISTERS = RESIDENT_TOGETHER == 1 && RESIDENT_TILES <= 4 &&
                                 RESIDENT_STEPS <= 4 &&
                                 RESIDENT_BACKWARD_THREADS * RESIDENT_BACKWARD_BLOCKS <= 256,
    RESIDENT_AHEAD = RESIDENT_TOGETHER == RESIDENT_ROW_BLOCKS &&
                     !RESIDENT_TIGHT, /* O is read while operands arrive */
    /* O is copied to shared memory too: to that of P, which is free until then, if a row of P is as long. */
    RESIDENT_O_COPIED = RESIDENT_AHEAD && RESIDENT_WHOLE >= 8 * RESIDENT_CHUNKS,
    RESIDENT_O = RESIDENT_D_O + 1,
};

/* The accumulators of dP begin with -delta, if S and dP have code of their own: in one loop both begin with 0. */
enum { RESIDENT_DP_MINUS_DELTA = RESIDENT_ROWS_IN_REGISTERS };

typedef char resident_halves_are_of_one_row_block[RESIDENT_PARTS == 1 || RESIDENT_TOGETHER == 1
                                                      ? 1
                                                      : -1];

/* LSE to base 2 (or tau) of the lane's two queries of a warp tile, and rowsum(dO o O), which estimates delta.
   Where O overflowed f16 the estimate is infinite or NaN. */
struct resident_row_stats {
    float lse[2], delta[2];
};

/* A warp tile of queries at a column tile, or the first of RESIDENT_TOGETHER. `at`: which of the column tiles visited;
   in pass 1 which of their parts. */
struct resident_query_tile {
    const struct abi_args *a;
    struct ds_registers *regs; /* of all warp tiles of the warp */
    u32 row0, row_block;       /* its first row, and its number within the warp */
    u32 at;
};

/* The m-th after it. */
DEVICE struct resident_query_tile resident_query_tile_after(struct resident_query_tile q, u32 m)
{
    q.row0 += 16 * m;
    q.row_block += m;
    return q;
}

/* ---- delta ---- */

/* The dot product of two halves of O and dO. */
DEVICE float resident_dot_halves(u32 o, u32 d_o)
{
    return half_low(o) * half_low(d_o) + half_high(o) * half_high(d_o);
}

/* LSE of the lane's queries, and their O unless it is copied. */
DEVICE void resident_read_rows(struct resident_row_stats *stats,
                               struct frag_a o[RESIDENT_STEPS], const struct abi_args *a,
                               const struct resident_head *head, u32 row0)
{
    const float base = TRANSFORM == ABI_SPARSEGEN ? 1 : LOG2_E;
    u32 row = row0 + resident_row();
    if (!RESIDENT_O_COPIED)
        resident_rows_of(o, 0, RESIDENT_STEPS, &a->o, head, row0);
    stats->lse[0] = row < head->length ? resident_lse(a, head)[row] * base : 0;
    stats->lse[1] = row + 8 < head->length ? resident_lse(a, head)[row + 8] * base : 0;
}

/* rowsum(dO o O), divided by the dropout factor: dP is computed without it, dQ and dK are multiplied by it at
   the end. `o` has O unless it is copied. */
DEVICE void resident_load_delta(struct resident_row_stats *stats,
                                const struct frag_a o[RESIDENT_STEPS], const struct abi_args *a,
                                const struct resident_head *head, u32 row0)
{
    const float by = reciprocal_of(resident_kept_scale(a));
    float sum[2] = {0, 0};
    UNROLL
    for (u32 step = 0; step < RESIDENT_STEPS; step++) {
        struct frag_a out = o[step], d_o;
        if (row0 >=
            head->length) /* the same for the whole warp: beyond the length nothing was loaded */
            break;
        if (RESIDENT_O_COPIED)
            resident_load_rows(&out, head, RESIDENT_O, row0, 2 * step);
        resident_load_rows(&d_o, head, RESIDENT_D_O, row0, 2 * step);
        UNROLL
        for (u32 k = 0; k < 4; k++)
            sum[k % 2] += resident_dot_halves(out.x[k], d_o.x[k]);
    }
    stats->delta[0] = quad_sum(sum[0]) * by;
    stats->delta[1] = quad_sum(sum[1]) * by;
}

/* ---- products ---- */

/* Q and dO of the warp tile, with RESIDENT_ROWS_IN_REGISTERS. */
struct resident_own {
    struct frag_a rows[2][RESIDENT_STEPS];
};

DEVICE void resident_own_rows(struct resident_own *own, const struct resident_head *head,
                              u32 row0)
{
    UNROLL
    for (u32 step = 0; RESIDENT_ROWS_IN_REGISTERS && step < RESIDENT_STEPS; step++) {
        resident_load_rows(&own->rows[0][step], head, RESIDENT_Q, row0, 2 * step);
        resident_load_rows(&own->rows[1][step], head, RESIDENT_D_O, row0, 2 * step);
    }
}

/* Two steps of the head: rows of Q or dO times columns of K or V. A warp tile that sees nothing of the column
   tile may lie beyond the operand: then any rows do. */
DEVICE void resident_product(struct resident_scores *s, const struct resident_head *head,
                             enum resident_operand rows, u32 row0,
                             enum resident_operand columns, u32 step,
                             const struct resident_tile *t)
{
    struct frag_a two[2 * RESIDENT_TOGETHER];
    u32 first = RESIDENT_ROW0_RECOMPUTED ? opt_barrier(row0) : row0;
    UNROLL
    for (u32 m = 0; m < RESIDENT_TOGETHER; m++) {
        u32 row = RESIDENT_TOGETHER == 1 || t[m].any ? first + 16 * m : 0;
        resident_load_rows(&two[2 * m], head, rows, row, 2 * step);
        if (step + 1 < RESIDENT_STEPS)
            resident_load_rows(&two[2 * m + 1], head, rows, row, 2 * step + 2);
    }
    const struct resident_row_operands operands = {two, 2, RESIDENT_TOGETHER, step, 2};
    resident_dots(s, operands, head, columns, t, RESIDENT_SPAN);
}

/* S (which 0) or dP (which 1) += products over the head. */
DEVICE void resident_products(struct resident_scores *s, const struct resident_own *own,
                              const struct resident_head *head, u32 which, u32 row0,
                              const struct resident_tile *t)
{
    const enum resident_operand rows = which ? RESIDENT_D_O : RESIDENT_Q;
    const enum resident_operand columns = which ? RESIDENT_V : RESIDENT_K;
    if (RESIDENT_ROWS_IN_REGISTERS) {
        const struct resident_row_operands operands = {own->rows[which], 0, 1, 0,
                                                       RESIDENT_STEPS};
        resident_dots(s, operands, head, columns, t, RESIDENT_SPAN);
    } else if (RESIDENT_ROLLED || RESIDENT_TIGHT) {
        NO_UNROLL
        for (u32 step = 0; step < RESIDENT_STEPS; step += 2)
            resident_product(s, head, rows, row0, columns, step, t);
    } else {
        UNROLL
        for (u32 step = 0; step < RESIDENT_STEPS; step += 2)
            resident_product(s, head, rows, row0, columns, step, t);
    }
}

/* Sets the initial values of the accumulators of dP. */
DEVICE void resident_begin_dp(struct resident_scores *dp,
                              const struct resident_row_stats *stats)
{
    UNROLL
    for (u32 k = 0; k < 16; k++)
        dp->at[k / 4].x[k % 4] = RESIDENT_DP_MINUS_DELTA ? -stats->delta[k / 2 % 2] : 0;
}

/* S and dP of the warp tiles at a column tile, or at half of one. */
DEVICE void resident_s_dp(struct resident_scores *p, struct resident_scores *dp,
                          const struct resident_own *own, const struct resident_head *head,
                          u32 row0, const struct resident_tile *t,
                          const struct resident_row_stats *stats)
{
    UNROLL
    for (u32 m = 0; m < RESIDENT_TOGETHER; m++) {
        resident_scores_clear(&p[m]);
        resident_begin_dp(&dp[m], &stats[m]);
    }
    if (RESIDENT_ROWS_IN_REGISTERS) {
        resident_products(p, own, head, 0, row0, t);
        resident_products(dp, own, head, 1, row0, t);
        return;
    }
    NO_UNROLL
    for (u32 which = 0; which < 2; which++) { /* one code for both */
        UNROLL
        for (u32 m = 0; m < RESIDENT_TOGETHER; m++) {
            p[m] = dp[m];
            resident_scores_clear(&dp[m]);
        }
        resident_products(dp, own, head, which, row0, t);
    }
}

#endif
