/* SPDX-License-Identifier: Apache-2.0 */
/* Backward, short sequences, the first turn of queries: P to the square, P (dP - c) to registers, and
   what delta is more than c = dO . O. See short/backward.h. */
#ifndef MASKC_CUDA_SHORT_WEIGH_H
#define MASKC_CUDA_SHORT_WEIGH_H
#include "cuda/short/held.h"
#include "cuda/slopes.h"

enum {
    /* Strips of queries at a time: one where all that is held leaves no room for two. */
    SHORT_TOGETHER = SHORT_TILES > 4 ? 1 : SHORT_STRIPS,
    /* Wide heads of many tiles: steps in a loop, and nothing is read before it is used. */
    SHORT_TIGHT = SHORT_TILES > 4 && SHORT_STEPS > 4,
    /* Where registers are fewest none holds what is worked out from a strip's place. */
    SHORT_AFRESH = SHORT_TIGHT || (SHORT_STEPS == 3 && DTYPE == ABI_F16),
    /* Where registers allow it, rows of Q and dO are read once, not for each tile. */
    SHORT_ROWS_HELD = SHORT_TOGETHER == 1 && SHORT_TILES <= 4 && SHORT_STEPS <= 4 &&
                      SHORT_BACKWARD_THREADS * SHORT_BACKWARD_BLOCKS <= 256,
    SHORT_AHEAD =
        SHORT_TOGETHER == SHORT_STRIPS && !SHORT_TIGHT, /* O is read while operands arrive */
};

/* Sums of dP begin with -c. Where S and dP take turns in one text they begin alike. */
enum { SHORT_CENTRED = SHORT_ROWS_HELD };

typedef char short_halves_are_of_one_strip[SHORT_PARTS == 1 || SHORT_TOGETHER == 1 ? 1 : -1];

/* What the lane's two queries of a strip begin with: base 2 LSE (or tau), and c. Of an O that f16 could not
   hold c is infinity, or no number. */
struct short_state {
    float lse[2], centre[2];
};

/* ---- c ---- */

/* Of two halves each of O and dO. */
DEVICE float short_centre_of(u32 o, u32 d_o)
{
    return half_low(o) * half_low(d_o) + half_high(o) * half_high(d_o);
}

/* LSE of the lane's queries, and their O. */
DEVICE void short_read_rows(struct short_state *state, struct frag_a o[SHORT_STEPS],
                            const struct abi_args *a, const struct short_job *j, u32 row0)
{
    const float base = TRANSFORM == ABI_SPARSEGEN ? 1 : SHORT_LOG2_E;
    u32 row = row0 + short_row();
    short_rows_of(o, 0, SHORT_STEPS, &a->o, j, row0);
    state->lse[0] = row < j->length ? short_lse(a, j)[row] * base : 0;
    state->lse[1] = row + 8 < j->length ? short_lse(a, j)[row + 8] * base : 0;
}

/* O's rows times dO's, of kept entries, whose factor is left to what is stored. */
DEVICE void short_centres(struct short_state *state, const struct frag_a o[SHORT_STEPS],
                          const struct abi_args *a, const struct short_job *j, u32 row0)
{
    const float by = reciprocal_of(short_kept_scale(a));
    float sum[2] = {0, 0};
    UNROLL
    for (u32 step = 0; step < SHORT_STEPS; step++) {
        struct frag_a d_o;
        if (row0 >= j->length) /* the same for the whole warp: nothing was fetched */
            break;
        short_load_rows(&d_o, j, SHORT_D_O, row0, 2 * step);
        UNROLL
        for (u32 k = 0; k < 4; k++)
            sum[k % 2] += short_centre_of(o[step].x[k], d_o.x[k]);
    }
    state->centre[0] = quad_sum(sum[0]) * by;
    state->centre[1] = quad_sum(sum[1]) * by;
}

/* ---- products ---- */

/* Rows of Q and dO, of the one strip. */
struct short_own {
    struct frag_a rows[2][SHORT_STEPS];
};

DEVICE void short_own_rows(struct short_own *own, const struct short_job *j, u32 row0)
{
    UNROLL
    for (u32 step = 0; SHORT_ROWS_HELD && step < SHORT_STEPS; step++) {
        short_load_rows(&own->rows[0][step], j, SHORT_Q, row0, 2 * step);
        short_load_rows(&own->rows[1][step], j, SHORT_D_O, row0, 2 * step);
    }
}

/* Two steps of strips' rows of one operand times the tile's columns of another. A strip that sees
   nothing of the tile may lie beyond the operand: any rows do for it. */
DEVICE void short_product(struct short_scores *s, const struct short_job *j,
                          enum short_operand rows, u32 row0, enum short_operand columns,
                          u32 step, const struct short_tile *t)
{
    struct frag_a two[2 * SHORT_TOGETHER];
    u32 first = SHORT_AFRESH ? afresh(row0) : row0;
    UNROLL
    for (u32 m = 0; m < SHORT_TOGETHER; m++) {
        u32 row = SHORT_TOGETHER == 1 || t[m].any ? first + 16 * m : 0;
        short_load_rows(&two[2 * m], j, rows, row, 2 * step);
        if (step + 1 < SHORT_STEPS)
            short_load_rows(&two[2 * m + 1], j, rows, row, 2 * step + 2);
    }
    short_dots(s, two, 2, step, 2, j, columns, t, SHORT_TOGETHER, SHORT_SPAN);
}

/* s += products, of S or of dP. */
DEVICE void short_products(struct short_scores *s, const struct short_own *own,
                           const struct short_job *j, u32 which, u32 row0,
                           const struct short_tile *t)
{
    const enum short_operand rows = which ? SHORT_D_O : SHORT_Q;
    const enum short_operand columns = which ? SHORT_V : SHORT_K;
    if (SHORT_ROWS_HELD) {
        short_dots(s, own->rows[which], 0, 0, SHORT_STEPS, j, columns, t, 1, SHORT_SPAN);
    } else if (SHORT_ROLLED || SHORT_TIGHT) {
        NO_UNROLL
        for (u32 step = 0; step < SHORT_STEPS; step += 2)
            short_product(s, j, rows, row0, columns, step, t);
    } else {
        UNROLL
        for (u32 step = 0; step < SHORT_STEPS; step += 2)
            short_product(s, j, rows, row0, columns, step, t);
    }
}

/* ---- the turn ---- */

/* What the turn collects beside the square: sums of what is held, entries of sparsegen's support (the second
   row's in the upper half), and which 16 x 16 parts of the square there are. */
struct short_sums {
    float slope[2];
    u32 count, map;
};

/* From products to P, of one strip. Where all is seen nothing is masked. */
DEVICE void short_weigh_scores(struct short_scores *p, const struct abi_args *a,
                               const struct short_tile *t, const struct short_state *state)
{
    const float scale = TRANSFORM == ABI_SPARSEGEN ? a->scale : a->scale * SHORT_LOG2_E;
    const float slope = sparsegen_slope(a);
    UNROLL
    for (u32 k = 0; k < 2 * SHORT_PAIRS; k++) {
        float *x = &p->at[k / 4].x[k % 4], lse = state->lse[k / 2 % 2];
        *x = TRANSFORM == ABI_SPARSEGEN ? sparsegen_weight(*x * scale, lse, slope)
                                        : exp2_of(*x * scale - lse);
    }
    if (!short_hides(t))
        return;
    UNROLL
    for (u32 k = 0; k < 2 * SHORT_PAIRS; k++) {
        float *x = &p->at[k / 4].x[k % 4];
        *x = short_sees(t, k / 4, k % 4) ? *x : 0;
    }
}

/* From P and products to P, with a minus where an entry is dropped, and P (dP - c), or dP - c on the
   support, of one strip. */
DEVICE void short_slopes(struct short_scores *p, struct short_scores *dp,
                         const struct short_state *state, u32 kept, struct short_sums *sums)
{
    UNROLL
    for (u32 k = 0; k < 2 * SHORT_PAIRS; k++) {
        float *x = &p->at[k / 4].x[k % 4], *y = &dp->at[k / 4].x[k % 4];
        u32 row = k / 2 % 2, keep = kept >> k & 1;
        float w = *x, centre = state->centre[row];
        *y = SHORT_CENTRED ? DROPOUT && !keep ? -centre : *y
                           : (DROPOUT && !keep ? 0 : *y) - centre;
        *y = score_gradient(w, *y, 0);
        *x = DROPOUT && !keep ? -w : w;
        sums->slope[row] += *y;
        sums->count += TRANSFORM == ABI_SPARSEGEN && w > 0 ? 1u << 16 * row : 0;
    }
}

/* One strip, from S and dP to what is left of them. */
DEVICE void short_leave(struct short_scores *p, struct short_scores *dp,
                        const struct abi_args *a, const struct short_job *j, u32 row0,
                        const struct short_tile *t, const struct short_state *state, u32 kept,
                        struct short_sums *sums, struct short_held *held, u32 strip, u32 at)
{
    struct short_slope one;
    short_weigh_scores(p, a, t, state);
    short_slopes(p, dp, state, kept, sums);
    short_hold(&one, dp, p);
    short_keep(held, strip, at, &one);
    UNROLL
    for (u32 half = 0; half < SHORT_SPAN / 2; half++) {
        if (!short_live(t, 2 * half, 2))
            continue;
        UNROLL
        for (u32 k = 4 * half; k < 4 * half + 4; k++) {
            const float *x = &p->at[k / 2].x[2 * (k % 2)];
            short_put(j, row0, t, k, half_pack(x[0], x[1]));
        }
    }
    sums->map |= short_halves(t) << t->col0 / 16;
}

/* Sums of dP begin with what is taken from it: -c, held once for all tiles. */
DEVICE void short_begin_dp(struct short_scores *dp, const struct short_state *state)
{
    UNROLL
    for (u32 k = 0; k < 16; k++)
        dp->at[k / 4].x[k % 4] = SHORT_CENTRED ? -state->centre[k / 2 % 2] : 0;
}

/* S and dP of strips at a tile or half of it. */
DEVICE void short_both(struct short_scores *p, struct short_scores *dp,
                       const struct short_own *own, const struct short_job *j, u32 row0,
                       const struct short_tile *t, const struct short_state *state)
{
    UNROLL
    for (u32 m = 0; m < SHORT_TOGETHER; m++) {
        short_scores_clear(&p[m]);
        short_begin_dp(&dp[m], &state[m]);
    }
    if (SHORT_ROWS_HELD) {
        short_products(p, own, j, 0, row0, t);
        short_products(dp, own, j, 1, row0, t);
        return;
    }
    NO_UNROLL
    for (u32 which = 0; which < 2; which++) { /* by one text */
        UNROLL
        for (u32 m = 0; m < SHORT_TOGETHER; m++) {
            p[m] = dp[m];
            short_scores_clear(&dp[m]);
        }
        short_products(dp, own, j, which, row0, t);
    }
}

/* Strips at a tile or half of it. */
DEVICE void short_first(const struct abi_args *a, const struct short_job *j, u32 row0,
                        const struct short_tile *t, const struct short_state *state,
                        const struct short_own *own, struct short_sums *sums,
                        struct short_held *held, u32 strip, u32 at)
{
    struct short_scores p[SHORT_TOGETHER], dp[SHORT_TOGETHER];
    short_both(p, dp, own, j, row0, t, state);
    const u32 kept = short_kept(a, j, row0, t, SHORT_SPAN / 2, SHORT_TOGETHER);
    UNROLL
    for (u32 m = 0; m < SHORT_TOGETHER; m++)
        short_leave(&p[m], &dp[m], a, j, row0 + 16 * m, &t[m], &state[m], kept >> 16 * m,
                    &sums[m], held, strip + m, at);
}

DEVICE float short_mean(float sum, float count)
{
    sum = quad_sum(sum);
    if (TRANSFORM != ABI_SPARSEGEN)
        return sum;
    count = quad_sum(count);
    return count > 0 ? sum / count : 0;
}

DEVICE void short_end_turn(const struct short_sums *sums, const struct short_job *j, u32 row0,
                           struct short_held *held, u32 strip)
{
    UNROLL
    for (u32 m = 0; m < SHORT_TOGETHER; m++) {
        const float missing[2] = {short_mean(sums[m].slope[0], (float)(sums[m].count & 0xffff)),
                                  short_mean(sums[m].slope[1], (float)(sums[m].count >> 16))};
        short_keep_missing(held, strip + m, missing);
        if (short_lane() == 0)
            shared_put_u32(short_map(j, row0 / 16 + m), sums[m].map);
    }
}

/* P to the square; what is held of strips from `strip` on. */
DEVICE void short_weigh_once(const struct abi_args *a, const struct short_job *j, u32 row0,
                             const struct short_state *state, struct short_held *held,
                             u32 strip)
{
    struct short_walk w = short_walk_at(&a->forward, j, row0, SHORT_TOGETHER);
    struct short_tile t[SHORT_TOGETHER];
    struct short_sums sums[SHORT_TOGETHER];
    struct short_own own;
    if (row0 < j->length) /* the same for the whole warp: nothing was fetched */
        short_own_rows(&own, j, row0);
    UNROLL
    for (u32 m = 0; m < SHORT_TOGETHER; m++) {
        sums[m].slope[0] = sums[m].slope[1] = 0;
        sums[m].count = sums[m].map = 0;
    }
    NO_UNROLL
    for (u32 at = 0; short_next(&w, j, t, SHORT_TOGETHER); at++) {
        NO_UNROLL
        for (u32 part = 0; part < SHORT_PARTS; part++) {
            if (part)
                short_next_half(t); /* then strips come one by one */
            if (short_any(t, SHORT_TOGETHER) & (SHORT_PARTS > 1 ? 0xffffu : 0xffffffffu))
                short_first(a, j, row0, t, state, &own, sums, held, strip,
                            SHORT_PARTS * at + part);
        }
    }
    short_end_turn(sums, j, row0, held, strip);
}

/* Where c is not finite it becomes 0; whether there is one in the warp. */
DEVICE u32 short_lacks_centre(struct short_state *state)
{
    u32 lacks = 0;
    UNROLL
    for (u32 k = 0; DTYPE == ABI_F16 && k < 2 * SHORT_TOGETHER; k++) {
        float *centre = &state[k / 2].centre[k % 2];
        u32 infinite = (bits_of(*centre) & 0x7f800000u) == 0x7f800000u;
        lacks |= infinite;
        *centre = infinite ? 0 : *centre;
    }
    return DTYPE == ABI_F16 && ANY(lacks);
}

/* The turn; twice where a c is lacking, the first time only for the sums that tell it. */
DEVICE void short_weigh(const struct abi_args *a, const struct short_job *j, u32 row0,
                        struct short_state *state, struct short_held *held, u32 strip)
{
    NO_UNROLL
    for (u32 more = short_lacks_centre(state);; more = 0) {
        short_weigh_once(a, j, row0, state, held, strip);
        if (!more)
            break;
        UNROLL
        for (u32 k = 0; k < 2 * SHORT_TOGETHER; k++)
            state[k / 2].centre[k % 2] += short_missing(held, strip + k / 2, k % 2);
    }
}

/* One strip, whose O is read only now. */
DEVICE void short_weigh_alone(const struct abi_args *a, const struct short_job *j, u32 row0,
                              struct short_held *held, u32 strip)
{
    struct short_state state;
    struct frag_a o[SHORT_STEPS];
    short_read_rows(&state, o, a, j, row0);
    short_centres(&state, o, a, j, row0);
    short_weigh(a, j, row0, &state, held, strip);
}

#endif
