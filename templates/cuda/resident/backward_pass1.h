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
    RESIDENT_AFRESH = RESIDENT_TIGHT || (RESIDENT_STEPS == 3 && DTYPE == ABI_F16),
    /* Where registers allow it, rows of Q and dO are read once, not for each tile. */
    RESIDENT_ROWS_HELD = RESIDENT_TOGETHER == 1 && RESIDENT_TILES <= 4 && RESIDENT_STEPS <= 4 &&
                         RESIDENT_BACKWARD_THREADS * RESIDENT_BACKWARD_BLOCKS <= 256,
    RESIDENT_AHEAD = RESIDENT_TOGETHER == RESIDENT_ROW_BLOCKS &&
                     !RESIDENT_TIGHT, /* O is read while operands arrive */
};

/* Sums of dP begin with -c. Where S and dP take turns in one text they begin alike. */
enum { RESIDENT_CENTRED = RESIDENT_ROWS_HELD };

typedef char resident_halves_are_of_one_row_block[RESIDENT_PARTS == 1 || RESIDENT_TOGETHER == 1
                                                      ? 1
                                                      : -1];

/* What the lane's two queries of a row block begin with: base 2 LSE (or tau), and c. Of an O that f16 could not
   hold c is infinity, or no number. */
struct resident_state {
    float lse[2], centre[2];
};

/* ---- c ---- */

/* Of two halves each of O and dO. */
DEVICE float resident_centre_of(u32 o, u32 d_o)
{
    return half_low(o) * half_low(d_o) + half_high(o) * half_high(d_o);
}

/* LSE of the lane's queries, and their O. */
DEVICE void resident_read_rows(struct resident_state *state, struct frag_a o[RESIDENT_STEPS],
                               const struct abi_args *a, const struct resident_job *j, u32 row0)
{
    const float base = TRANSFORM == ABI_SPARSEGEN ? 1 : LOG2_E;
    u32 row = row0 + resident_row();
    resident_rows_of(o, 0, RESIDENT_STEPS, &a->o, j, row0);
    state->lse[0] = row < j->length ? resident_lse(a, j)[row] * base : 0;
    state->lse[1] = row + 8 < j->length ? resident_lse(a, j)[row + 8] * base : 0;
}

/* O's rows times dO's, of kept entries, whose factor is left to what is stored. */
DEVICE void resident_centres(struct resident_state *state,
                             const struct frag_a o[RESIDENT_STEPS], const struct abi_args *a,
                             const struct resident_job *j, u32 row0)
{
    const float by = reciprocal_of(resident_kept_scale(a));
    float sum[2] = {0, 0};
    UNROLL
    for (u32 step = 0; step < RESIDENT_STEPS; step++) {
        struct frag_a d_o;
        if (row0 >= j->length) /* the same for the whole warp: nothing was fetched */
            break;
        resident_load_rows(&d_o, j, RESIDENT_D_O, row0, 2 * step);
        UNROLL
        for (u32 k = 0; k < 4; k++)
            sum[k % 2] += resident_centre_of(o[step].x[k], d_o.x[k]);
    }
    state->centre[0] = quad_sum(sum[0]) * by;
    state->centre[1] = quad_sum(sum[1]) * by;
}

/* ---- products ---- */

/* Rows of Q and dO, of the one row_block. */
struct resident_own {
    struct frag_a rows[2][RESIDENT_STEPS];
};

DEVICE void resident_own_rows(struct resident_own *own, const struct resident_job *j, u32 row0)
{
    UNROLL
    for (u32 step = 0; RESIDENT_ROWS_HELD && step < RESIDENT_STEPS; step++) {
        resident_load_rows(&own->rows[0][step], j, RESIDENT_Q, row0, 2 * step);
        resident_load_rows(&own->rows[1][step], j, RESIDENT_D_O, row0, 2 * step);
    }
}

/* Two steps of row blocks' rows of one operand times the tile's columns of another. A row block that sees
   nothing of the tile may lie beyond the operand: any rows do for it. */
DEVICE void resident_product(struct resident_scores *s, const struct resident_job *j,
                             enum resident_operand rows, u32 row0,
                             enum resident_operand columns, u32 step,
                             const struct resident_tile *t)
{
    struct frag_a two[2 * RESIDENT_TOGETHER];
    u32 first = RESIDENT_AFRESH ? opt_barrier(row0) : row0;
    UNROLL
    for (u32 m = 0; m < RESIDENT_TOGETHER; m++) {
        u32 row = RESIDENT_TOGETHER == 1 || t[m].any ? first + 16 * m : 0;
        resident_load_rows(&two[2 * m], j, rows, row, 2 * step);
        if (step + 1 < RESIDENT_STEPS)
            resident_load_rows(&two[2 * m + 1], j, rows, row, 2 * step + 2);
    }
    resident_dots(s, two, 2, step, 2, j, columns, t, RESIDENT_TOGETHER, RESIDENT_SPAN);
}

/* s += products, of S or of dP. */
DEVICE void resident_products(struct resident_scores *s, const struct resident_own *own,
                              const struct resident_job *j, u32 which, u32 row0,
                              const struct resident_tile *t)
{
    const enum resident_operand rows = which ? RESIDENT_D_O : RESIDENT_Q;
    const enum resident_operand columns = which ? RESIDENT_V : RESIDENT_K;
    if (RESIDENT_ROWS_HELD) {
        resident_dots(s, own->rows[which], 0, 0, RESIDENT_STEPS, j, columns, t, 1,
                      RESIDENT_SPAN);
    } else if (RESIDENT_ROLLED || RESIDENT_TIGHT) {
        NO_UNROLL
        for (u32 step = 0; step < RESIDENT_STEPS; step += 2)
            resident_product(s, j, rows, row0, columns, step, t);
    } else {
        UNROLL
        for (u32 step = 0; step < RESIDENT_STEPS; step += 2)
            resident_product(s, j, rows, row0, columns, step, t);
    }
}

/* ---- the turn ---- */

/* What the turn collects beside the square: sums of what is held, entries of sparsegen's support (the second
   row's in the upper half), and which 16 x 16 parts of the square there are. */
struct resident_sums {
    float slope[2];
    u32 count, map;
};

/* From products to P, of one row_block. Where all is seen nothing is masked. */
DEVICE void resident_weigh_scores(struct resident_scores *p, const struct abi_args *a,
                                  const struct resident_tile *t,
                                  const struct resident_state *state)
{
    const float scale = TRANSFORM == ABI_SPARSEGEN ? a->scale : a->scale * LOG2_E;
    const float slope = sparsegen_slope(a);
    UNROLL
    for (u32 k = 0; k < 2 * RESIDENT_PAIRS; k++) {
        float *x = &p->at[k / 4].x[k % 4], lse = state->lse[k / 2 % 2];
        *x = TRANSFORM == ABI_SPARSEGEN ? sparsegen_weight(*x * scale, lse, slope)
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
DEVICE void resident_slopes(struct resident_scores *p, struct resident_scores *dp,
                            const struct resident_state *state, u32 kept,
                            struct resident_sums *sums)
{
    UNROLL
    for (u32 k = 0; k < 2 * RESIDENT_PAIRS; k++) {
        float *x = &p->at[k / 4].x[k % 4], *y = &dp->at[k / 4].x[k % 4];
        u32 row = k / 2 % 2, keep = kept >> k & 1;
        float w = *x, centre = state->centre[row];
        *y = RESIDENT_CENTRED ? DROPOUT && !keep ? -centre : *y
                              : (DROPOUT && !keep ? 0 : *y) - centre;
        *y = score_gradient(w, *y, 0);
        *x = DROPOUT && !keep ? -w : w;
        sums->slope[row] += *y;
        sums->count += TRANSFORM == ABI_SPARSEGEN && w > 0 ? 1u << 16 * row : 0;
    }
}

/* One row block, from S and dP to what is left of them. */
DEVICE void resident_leave(struct resident_scores *p, struct resident_scores *dp,
                           const struct abi_args *a, const struct resident_job *j, u32 row0,
                           const struct resident_tile *t, const struct resident_state *state,
                           u32 kept, struct resident_sums *sums, struct resident_held *held,
                           u32 row_block, u32 at)
{
    struct resident_slope one;
    resident_weigh_scores(p, a, t, state);
    resident_slopes(p, dp, state, kept, sums);
    resident_hold(&one, dp, p);
    resident_keep(held, row_block, at, &one);
    UNROLL
    for (u32 half = 0; half < RESIDENT_SPAN / 2; half++) {
        if (!resident_live(t, 2 * half, 2))
            continue;
        UNROLL
        for (u32 k = 4 * half; k < 4 * half + 4; k++) {
            const float *x = &p->at[k / 2].x[2 * (k % 2)];
            resident_put(j, row0, t, k, half_pack(x[0], x[1]));
        }
    }
    sums->map |= resident_halves(t) << t->col0 / 16;
}

/* Sums of dP begin with what is taken from it: -c, held once for all tiles. */
DEVICE void resident_begin_dp(struct resident_scores *dp, const struct resident_state *state)
{
    UNROLL
    for (u32 k = 0; k < 16; k++)
        dp->at[k / 4].x[k % 4] = RESIDENT_CENTRED ? -state->centre[k / 2 % 2] : 0;
}

/* S and dP of row blocks at a tile or half of it. */
DEVICE void resident_both(struct resident_scores *p, struct resident_scores *dp,
                          const struct resident_own *own, const struct resident_job *j,
                          u32 row0, const struct resident_tile *t,
                          const struct resident_state *state)
{
    UNROLL
    for (u32 m = 0; m < RESIDENT_TOGETHER; m++) {
        resident_scores_clear(&p[m]);
        resident_begin_dp(&dp[m], &state[m]);
    }
    if (RESIDENT_ROWS_HELD) {
        resident_products(p, own, j, 0, row0, t);
        resident_products(dp, own, j, 1, row0, t);
        return;
    }
    NO_UNROLL
    for (u32 which = 0; which < 2; which++) { /* by one text */
        UNROLL
        for (u32 m = 0; m < RESIDENT_TOGETHER; m++) {
            p[m] = dp[m];
            resident_scores_clear(&dp[m]);
        }
        resident_products(dp, own, j, which, row0, t);
    }
}

/* Row blocks at a tile or half of it. */
DEVICE void resident_first(const struct abi_args *a, const struct resident_job *j, u32 row0,
                           const struct resident_tile *t, const struct resident_state *state,
                           const struct resident_own *own, struct resident_sums *sums,
                           struct resident_held *held, u32 row_block, u32 at)
{
    struct resident_scores p[RESIDENT_TOGETHER], dp[RESIDENT_TOGETHER];
    resident_both(p, dp, own, j, row0, t, state);
    const u32 kept = resident_kept(a, j, row0, t, RESIDENT_SPAN / 2, RESIDENT_TOGETHER);
    UNROLL
    for (u32 m = 0; m < RESIDENT_TOGETHER; m++)
        resident_leave(&p[m], &dp[m], a, j, row0 + 16 * m, &t[m], &state[m], kept >> 16 * m,
                       &sums[m], held, row_block + m, at);
}

DEVICE float resident_mean(float sum, float count)
{
    sum = quad_sum(sum);
    if (TRANSFORM != ABI_SPARSEGEN)
        return sum;
    count = quad_sum(count);
    return count > 0 ? sum / count : 0;
}

DEVICE void resident_end_turn(const struct resident_sums *sums, const struct resident_job *j,
                              u32 row0, struct resident_held *held, u32 row_block)
{
    UNROLL
    for (u32 m = 0; m < RESIDENT_TOGETHER; m++) {
        const float missing[2] = {
            resident_mean(sums[m].slope[0], (float)(sums[m].count & 0xffff)),
            resident_mean(sums[m].slope[1], (float)(sums[m].count >> 16))};
        resident_keep_missing(held, row_block + m, missing);
        if (lane() == 0)
            shared_put_u32(resident_map(j, row0 / 16 + m), sums[m].map);
    }
}

/* P to the square; what is held of row blocks from `row block` on. */
DEVICE void resident_weigh_once(const struct abi_args *a, const struct resident_job *j,
                                u32 row0, const struct resident_state *state,
                                struct resident_held *held, u32 row_block)
{
    struct resident_walk w = resident_walk_at(&a->forward, j, row0, RESIDENT_TOGETHER);
    struct resident_tile t[RESIDENT_TOGETHER];
    struct resident_sums sums[RESIDENT_TOGETHER];
    struct resident_own own;
    if (row0 < j->length) /* the same for the whole warp: nothing was fetched */
        resident_own_rows(&own, j, row0);
    UNROLL
    for (u32 m = 0; m < RESIDENT_TOGETHER; m++) {
        sums[m].slope[0] = sums[m].slope[1] = 0;
        sums[m].count = sums[m].map = 0;
    }
    NO_UNROLL
    for (u32 at = 0; resident_next(&w, j, t, RESIDENT_TOGETHER); at++) {
        NO_UNROLL
        for (u32 part = 0; part < RESIDENT_PARTS; part++) {
            if (part)
                resident_next_half(t); /* then row blocks come one by one */
            if (resident_any(t, RESIDENT_TOGETHER) &
                (RESIDENT_PARTS > 1 ? 0xffffu : 0xffffffffu))
                resident_first(a, j, row0, t, state, &own, sums, held, row_block,
                               RESIDENT_PARTS * at + part);
        }
    }
    resident_end_turn(sums, j, row0, held, row_block);
}

/* Where c is not finite it becomes 0; whether there is one in the warp. */
DEVICE u32 resident_lacks_centre(struct resident_state *state)
{
    u32 lacks = 0;
    UNROLL
    for (u32 k = 0; DTYPE == ABI_F16 && k < 2 * RESIDENT_TOGETHER; k++) {
        float *centre = &state[k / 2].centre[k % 2];
        u32 infinite = (bits_of(*centre) & 0x7f800000u) == 0x7f800000u;
        lacks |= infinite;
        *centre = infinite ? 0 : *centre;
    }
    return DTYPE == ABI_F16 && ANY(lacks);
}

/* The turn; twice where a c is lacking, the first time only for the sums that tell it. */
DEVICE void resident_weigh(const struct abi_args *a, const struct resident_job *j, u32 row0,
                           struct resident_state *state, struct resident_held *held,
                           u32 row_block)
{
    NO_UNROLL
    for (u32 more = resident_lacks_centre(state);; more = 0) {
        resident_weigh_once(a, j, row0, state, held, row_block);
        if (!more)
            break;
        UNROLL
        for (u32 k = 0; k < 2 * RESIDENT_TOGETHER; k++)
            state[k / 2].centre[k % 2] += resident_missing(held, row_block + k / 2, k % 2);
    }
}

/* One row block, whose O is read only now. */
DEVICE void resident_weigh_alone(const struct abi_args *a, const struct resident_job *j,
                                 u32 row0, struct resident_held *held, u32 row_block)
{
    struct resident_state state;
    struct frag_a o[RESIDENT_STEPS];
    resident_read_rows(&state, o, a, j, row0);
    resident_centres(&state, o, a, j, row0);
    resident_weigh(a, j, row0, &state, held, row_block);
}

#endif
