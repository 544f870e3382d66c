/* SPDX-License-Identifier: Apache-2.0 */
/* Backward, short sequences, the first turn of queries: P to the square, P (dP - c) to registers, and
   what delta is more than c = dO . O. See short/backward.h. */
#ifndef MASKC_CUDA_RESIDENT_BACKWARD_PASS1_H
#define MASKC_CUDA_RESIDENT_BACKWARD_PASS1_H
#include "cuda/common/transform.h"
#include "cuda/resident/ds_registers.h"

enum {
    /* Row blocks of queries at a time: one where all that is held leaves no room for two. */
    RESIDENT_TOGETHER = RESIDENT_TILES > 4 ? 1 : RESIDENT_ROW_BLOCKS,
    /* Wide heads of many tiles: steps in a loop, and nothing is read before it is used. */
    RESIDENT_TIGHT = RESIDENT_TILES > 4 && RESIDENT_STEPS > 4,
    /* Where registers are fewest none holds what is worked out from a row block's place. */
    RESIDENT_ROW0_RECOMPUTED = RESIDENT_TIGHT || (RESIDENT_STEPS == 3 && DTYPE == ABI_F16),
    /* Where registers allow it, rows of Q and dO are read once, not for each tile. */
    RESIDENT_ROWS_IN_REGISTERS = RESIDENT_TOGETHER == 1 && RESIDENT_TILES <= 4 &&
                                 RESIDENT_STEPS <= 4 &&
                                 RESIDENT_BACKWARD_THREADS * RESIDENT_BACKWARD_BLOCKS <= 256,
    RESIDENT_AHEAD = RESIDENT_TOGETHER == RESIDENT_ROW_BLOCKS &&
                     !RESIDENT_TIGHT, /* O is read while operands arrive */
};

/* Sums of dP begin with -c. Where S and dP take turns in one text they begin alike. */
enum { RESIDENT_DP_MINUS_DELTA = RESIDENT_ROWS_IN_REGISTERS };

typedef char resident_halves_are_of_one_row_block[RESIDENT_PARTS == 1 || RESIDENT_TOGETHER == 1
                                                      ? 1
                                                      : -1];

/* What the lane's two queries of a row block begin with: base 2 LSE (or tau), and c. Of an O that f16 could not
   hold c is infinity, or no number. */
struct resident_row_stats {
    float lse[2], delta[2];
};

/* ---- c ---- */

/* Of two halves each of O and dO. */
DEVICE float resident_dot_halves(u32 o, u32 d_o)
{
    return half_low(o) * half_low(d_o) + half_high(o) * half_high(d_o);
}

/* LSE of the lane's queries, and their O. */
DEVICE void resident_read_rows(struct resident_row_stats *stats,
                               struct frag_a o[RESIDENT_STEPS], const struct abi_args *a,
                               const struct resident_head *head, u32 row0)
{
    const float base = TRANSFORM == ABI_SPARSEGEN ? 1 : LOG2_E;
    u32 row = row0 + resident_row();
    resident_rows_of(o, 0, RESIDENT_STEPS, &a->o, head, row0);
    stats->lse[0] = row < head->length ? resident_lse(a, head)[row] * base : 0;
    stats->lse[1] = row + 8 < head->length ? resident_lse(a, head)[row + 8] * base : 0;
}

/* O's rows times dO's, of kept entries, whose factor is left to what is stored. */
DEVICE void resident_load_delta(struct resident_row_stats *stats,
                                const struct frag_a o[RESIDENT_STEPS], const struct abi_args *a,
                                const struct resident_head *head, u32 row0)
{
    const float by = reciprocal_of(resident_kept_scale(a));
    float sum[2] = {0, 0};
    UNROLL
    for (u32 step = 0; step < RESIDENT_STEPS; step++) {
        struct frag_a d_o;
        if (row0 >= head->length) /* the same for the whole warp: nothing was fetched */
            break;
        resident_load_rows(&d_o, head, RESIDENT_D_O, row0, 2 * step);
        UNROLL
        for (u32 k = 0; k < 4; k++)
            sum[k % 2] += resident_dot_halves(o[step].x[k], d_o.x[k]);
    }
    stats->delta[0] = quad_sum(sum[0]) * by;
    stats->delta[1] = quad_sum(sum[1]) * by;
}

/* ---- products ---- */

/* Rows of Q and dO, of the one row_block. */
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

/* Two steps of row blocks' rows of one operand times the tile's columns of another. A row block that sees
   nothing of the tile may lie beyond the operand: any rows do for it. */
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
    resident_dots(s, two, 2, step, 2, head, columns, t, RESIDENT_TOGETHER, RESIDENT_SPAN);
}

/* s += products, of S or of dP. */
DEVICE void resident_products(struct resident_scores *s, const struct resident_own *own,
                              const struct resident_head *head, u32 which, u32 row0,
                              const struct resident_tile *t)
{
    const enum resident_operand rows = which ? RESIDENT_D_O : RESIDENT_Q;
    const enum resident_operand columns = which ? RESIDENT_V : RESIDENT_K;
    if (RESIDENT_ROWS_IN_REGISTERS) {
        resident_dots(s, own->rows[which], 0, 0, RESIDENT_STEPS, head, columns, t, 1,
                      RESIDENT_SPAN);
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

/* ---- the turn ---- */

/* What the turn collects beside the square: sums of what is held, entries of sparsegen's support (the second
   row's in the upper half), and which 16 x 16 parts of the square there are. */
struct resident_sums {
    float ds[2];
    u32 count, map;
};

/* From products to P, of one row_block. Where all is seen nothing is masked. */
DEVICE void resident_compute_p(struct resident_scores *p, const struct abi_args *a,
                               const struct resident_tile *t,
                               const struct resident_row_stats *stats)
{
    const float scale = TRANSFORM == ABI_SPARSEGEN ? a->scale : a->scale * LOG2_E;
    const float p_scale = sparsegen_scale(a);
    UNROLL
    for (u32 k = 0; k < 2 * RESIDENT_PAIRS; k++) {
        float *x = &p->at[k / 4].x[k % 4], lse = stats->lse[k / 2 % 2];
        *x = TRANSFORM == ABI_SPARSEGEN ? sparsegen_p(*x * scale, lse, p_scale)
                                        : exp2_of(*x * scale - lse);
    }
    if (!resident_hides(t))
        return;
    UNROLL
    for (u32 k = 0; k < 2 * RESIDENT_PAIRS; k++) {
        float *x = &p->at[k / 4].x[k % 4];
        *x = resident_sees(t, k / 4, k % 4) ? *x : 0;
    }
}

/* From P and products to P, with a minus where an entry is dropped, and P (dP - c), or dP - c on the
   support, of one row_block. */
DEVICE void resident_compute_ds(struct resident_scores *p, struct resident_scores *dp,
                                const struct resident_row_stats *stats, u32 kept,
                                struct resident_sums *sums)
{
    UNROLL
    for (u32 k = 0; k < 2 * RESIDENT_PAIRS; k++) {
        float *x = &p->at[k / 4].x[k % 4], *y = &dp->at[k / 4].x[k % 4];
        u32 row = k / 2 % 2, keep = kept >> k & 1;
        float w = *x, delta = stats->delta[row];
        *y = RESIDENT_DP_MINUS_DELTA ? DROPOUT && !keep ? -delta : *y
                                     : (DROPOUT && !keep ? 0 : *y) - delta;
        *y = score_gradient(w, *y, 0);
        *x = DROPOUT && !keep ? -w : w;
        sums->ds[row] += *y;
        sums->count += TRANSFORM == ABI_SPARSEGEN && w > 0 ? 1u << 16 * row : 0;
    }
}

/* One row block, from S and dP to what is left of them. */
DEVICE void resident_pass1_row_block(struct resident_scores *p, struct resident_scores *dp,
                                     const struct abi_args *a, const struct resident_head *head,
                                     u32 row0, const struct resident_tile *t,
                                     const struct resident_row_stats *stats, u32 kept,
                                     struct resident_sums *sums, struct ds_registers *regs,
                                     u32 row_block, u32 at)
{
    struct resident_packed_ds one;
    resident_compute_p(p, a, t, stats);
    resident_compute_ds(p, dp, stats, kept, sums);
    resident_ds_pack(&one, dp, p);
    ds_registers_put(regs, row_block, at, &one);
    UNROLL
    for (u32 half = 0; half < RESIDENT_SPAN / 2; half++) {
        if (!resident_live(t, 2 * half, 2))
            continue;
        UNROLL
        for (u32 k = 4 * half; k < 4 * half + 4; k++) {
            const float *x = &p->at[k / 2].x[2 * (k % 2)];
            p_smem_put(head, row0, t, k, half_pack(x[0], x[1]));
        }
    }
    sums->map |= resident_halves(t) << t->col0 / 16;
}

/* Sums of dP begin with what is taken from it: -c, held once for all tiles. */
DEVICE void resident_begin_dp(struct resident_scores *dp,
                              const struct resident_row_stats *stats)
{
    UNROLL
    for (u32 k = 0; k < 16; k++)
        dp->at[k / 4].x[k % 4] = RESIDENT_DP_MINUS_DELTA ? -stats->delta[k / 2 % 2] : 0;
}

/* S and dP of row blocks at a tile or half of it. */
DEVICE void resident_both(struct resident_scores *p, struct resident_scores *dp,
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
    for (u32 which = 0; which < 2; which++) { /* by one text */
        UNROLL
        for (u32 m = 0; m < RESIDENT_TOGETHER; m++) {
            p[m] = dp[m];
            resident_scores_clear(&dp[m]);
        }
        resident_products(dp, own, head, which, row0, t);
    }
}

/* Row blocks at a tile or half of it. */
DEVICE void resident_pass1_tile(const struct abi_args *a, const struct resident_head *head,
                                u32 row0, const struct resident_tile *t,
                                const struct resident_row_stats *stats,
                                const struct resident_own *own, struct resident_sums *sums,
                                struct ds_registers *regs, u32 row_block, u32 at)
{
    struct resident_scores p[RESIDENT_TOGETHER], dp[RESIDENT_TOGETHER];
    resident_both(p, dp, own, head, row0, t, stats);
    const u32 kept = resident_kept(a, head, row0, t, RESIDENT_SPAN / 2, RESIDENT_TOGETHER);
    UNROLL
    for (u32 m = 0; m < RESIDENT_TOGETHER; m++)
        resident_pass1_row_block(&p[m], &dp[m], a, head, row0 + 16 * m, &t[m], &stats[m],
                                 kept >> 16 * m, &sums[m], regs, row_block + m, at);
}

DEVICE float resident_row_correction(float sum, float count)
{
    sum = quad_sum(sum);
    if (TRANSFORM != ABI_SPARSEGEN)
        return sum;
    count = quad_sum(count);
    return count > 0 ? sum / count : 0;
}

DEVICE void resident_finish_pass1(const struct resident_sums *sums,
                                  const struct resident_head *head, u32 row0,
                                  struct ds_registers *regs, u32 row_block)
{
    UNROLL
    for (u32 m = 0; m < RESIDENT_TOGETHER; m++) {
        const float delta_correction[2] = {
            resident_row_correction(sums[m].ds[0], (float)(sums[m].count & 0xffff)),
            resident_row_correction(sums[m].ds[1], (float)(sums[m].count >> 16))};
        ds_registers_put_correction(regs, row_block + m, delta_correction);
        if (lane() == 0)
            shared_put_u32(p_smem_map(head, row0 / 16 + m), sums[m].map);
    }
}

/* P to the square; what is held of row blocks from `row block` on. */
DEVICE void resident_pass1_row_blocks(const struct abi_args *a,
                                      const struct resident_head *head, u32 row0,
                                      const struct resident_row_stats *stats,
                                      struct ds_registers *regs, u32 row_block)
{
    struct resident_walk w = resident_walk_at(&a->forward, head, row0, RESIDENT_TOGETHER);
    struct resident_tile t[RESIDENT_TOGETHER];
    struct resident_sums sums[RESIDENT_TOGETHER];
    struct resident_own own;
    if (row0 < head->length) /* the same for the whole warp: nothing was fetched */
        resident_own_rows(&own, head, row0);
    UNROLL
    for (u32 m = 0; m < RESIDENT_TOGETHER; m++) {
        sums[m].ds[0] = sums[m].ds[1] = 0;
        sums[m].count = sums[m].map = 0;
    }
    NO_UNROLL
    for (u32 at = 0; resident_next(&w, head, t, RESIDENT_TOGETHER); at++) {
        NO_UNROLL
        for (u32 part = 0; part < RESIDENT_PARTS; part++) {
            if (part)
                resident_next_half(t); /* then row blocks come one by one */
            if (resident_any(t, RESIDENT_TOGETHER) &
                (RESIDENT_PARTS > 1 ? 0xffffu : 0xffffffffu))
                resident_pass1_tile(a, head, row0, t, stats, &own, sums, regs, row_block,
                                    RESIDENT_PARTS * at + part);
        }
    }
    resident_finish_pass1(sums, head, row0, regs, row_block);
}

/* Where c is not finite it becomes 0; whether there is one in the warp. */
DEVICE u32 resident_delta_overflows(struct resident_row_stats *stats)
{
    u32 overflows = 0;
    UNROLL
    for (u32 k = 0; DTYPE == ABI_F16 && k < 2 * RESIDENT_TOGETHER; k++) {
        float *delta = &stats[k / 2].delta[k % 2];
        u32 infinite = (bits_of(*delta) & 0x7f800000u) == 0x7f800000u;
        overflows |= infinite;
        *delta = infinite ? 0 : *delta;
    }
    return DTYPE == ABI_F16 && ANY(overflows);
}

/* The turn; twice where a c is lacking, the first time only for the sums that tell it. */
DEVICE void resident_backward_pass1(const struct abi_args *a, const struct resident_head *head,
                                    u32 row0, struct resident_row_stats *stats,
                                    struct ds_registers *regs, u32 row_block)
{
    NO_UNROLL
    for (u32 more = resident_delta_overflows(stats);; more = 0) {
        resident_pass1_row_blocks(a, head, row0, stats, regs, row_block);
        if (!more)
            break;
        UNROLL
        for (u32 k = 0; k < 2 * RESIDENT_TOGETHER; k++)
            stats[k / 2].delta[k % 2] +=
                ds_registers_correction(regs, row_block + k / 2, k % 2);
    }
}

/* One row block, whose O is read only now. */
DEVICE void resident_backward_pass1_alone(const struct abi_args *a,
                                          const struct resident_head *head, u32 row0,
                                          struct ds_registers *regs, u32 row_block)
{
    struct resident_row_stats stats;
    struct frag_a o[RESIDENT_STEPS];
    resident_read_rows(&stats, o, a, head, row0);
    resident_load_delta(&stats, o, a, head, row0);
    resident_backward_pass1(a, head, row0, &stats, regs, row_block);
}

#endif
