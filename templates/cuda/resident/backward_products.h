/* SPDX-License-Identifier: Apache-2.0 */
/* Resident family, backward of long heads (n > 128): what pass 1 computes from. LSE and the estimate of delta of a warp
   tile of queries, and the products S = Q K^T and dP = dO V^T over half a column tile. */
#ifndef MASKC_CUDA_RESIDENT_BACKWARD_PRODUCTS_H
#define MASKC_CUDA_RESIDENT_BACKWARD_PRODUCTS_H
#include "cuda/common/transform.h"
#include "cuda/resident/ds_registers.h"

enum {
    /* Wide heads: a loop over steps, and nothing is read before it is used. */
    RESIDENT_TIGHT = RESIDENT_STEPS > 4,
    /* Where registers are fewest, addresses are computed again from row0 for each use. */
    RESIDENT_ROW0_RECOMPUTED = RESIDENT_TIGHT || (RESIDENT_STEPS == 3 && DTYPE == ABI_F16),
    RESIDENT_AHEAD =
        RESIDENT_ROW_BLOCKS == 1 && !RESIDENT_TIGHT, /* O is read while operands arrive */
    /* O is copied to shared memory too: to that of P, which is free until then, if a row of P is as long. */
    RESIDENT_O_COPIED = RESIDENT_AHEAD && RESIDENT_WHOLE >= 8 * RESIDENT_CHUNKS,
    RESIDENT_O = RESIDENT_D_O + 1,
};

/* LSE to base 2 (or tau) of the lane's two queries of a warp tile, and rowsum(dO o O), which estimates delta.
   Where O overflowed f16 the estimate is infinite or NaN. */
struct resident_row_stats {
    float lse[2], delta[2];
};

/* A warp tile of queries at a column tile. `at`: which of the column tiles visited; in pass 1 which of their halves. */
struct resident_query_tile {
    const struct abi_args *a;
    struct ds_registers *regs; /* of all warp tiles of the warp */
    u32 row0, row_block;       /* its first row, and its number within the warp */
    u32 at;
};

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

/* Two steps of the head: rows of Q or dO times columns of K or V. */
DEVICE void resident_product(struct resident_scores *s, const struct resident_head *head,
                             enum resident_operand rows, u32 row0,
                             enum resident_operand columns, u32 step,
                             const struct resident_tile *t)
{
    struct frag_a two[2];
    const u32 row = RESIDENT_ROW0_RECOMPUTED ? opt_barrier(row0) : row0;
    resident_load_rows(&two[0], head, rows, row, 2 * step);
    if (step + 1 < RESIDENT_STEPS)
        resident_load_rows(&two[1], head, rows, row, 2 * step + 2);
    const struct resident_row_operands operands = {two, step, 2};
    resident_dots(s, operands, head, columns, t, RESIDENT_SPAN);
}

/* S (which 0) or dP (which 1) += products over the head. */
DEVICE void resident_products(struct resident_scores *s, const struct resident_head *head,
                              u32 which, u32 row0, const struct resident_tile *t)
{
    const enum resident_operand rows = which ? RESIDENT_D_O : RESIDENT_Q;
    const enum resident_operand columns = which ? RESIDENT_V : RESIDENT_K;
    UNROLL_BY(RESIDENT_ROLLED || RESIDENT_TIGHT ? 1 : RESIDENT_STEPS)
    for (u32 step = 0; step < RESIDENT_STEPS; step += 2)
        resident_product(s, head, rows, row0, columns, step, t);
}

/* S and dP of a warp tile at half of a column tile. */
DEVICE void resident_s_dp(struct resident_scores *p, struct resident_scores *dp,
                          const struct resident_head *head, u32 row0,
                          const struct resident_tile *t)
{
    resident_scores_clear(dp);
    NO_UNROLL
    for (u32 which = 0; which < 2; which++) { /* one code for both */
        *p = *dp;
        resident_scores_clear(dp);
        resident_products(dp, head, which, row0, t);
    }
}

#endif
