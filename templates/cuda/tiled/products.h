/* SPDX-License-Identifier: Apache-2.0 */
/* Products on fragments. Each column fragment is loaded from shared memory once and multiplied with the warp's row tiles:
   with two of them a product takes half as many loads. */
#ifndef MASKC_CUDA_TILED_PRODUCTS_H
#define MASKC_CUDA_TILED_PRODUCTS_H
#include "cuda/tiled/fragments.h"

DEVICE void scores_clear(struct scores s[ROW_TILES])
{
    UNROLL
    for (u32 k = 0; k < ROW_TILES * FRAGMENTS; k++) {
        struct frag_c *c = &s[k / FRAGMENTS].at[k % FRAGMENTS];
        c->x[0] = c->x[1] = c->x[2] = c->x[3] = 0;
    }
}

DEVICE void sums_clear(struct sums s[ROW_TILES])
{
    UNROLL
    for (u32 k = 0; k < ROW_TILES * 2 * STEPS; k++) {
        struct frag_c *c = &s[k / (2 * STEPS)].at[k % (2 * STEPS)];
        c->x[0] = c->x[1] = c->x[2] = c->x[3] = 0;
    }
}

/* A row tile as first operand of two steps. */
struct two_steps {
    struct frag_a at[2];
};

DEVICE void load_two_steps(struct two_steps a[ROW_TILES], const half_t *rows, u32 step)
{
    UNROLL
    for (u32 m = 0; m < ROW_TILES; m++) {
        load_rows(&a[m].at[0], rows + m * 16 * PITCH, step);
        if (step + 1 < STEPS)
            load_rows(&a[m].at[1], rows + m * 16 * PITCH, step + 1);
    }
}

/* Two steps of fragment f, whose columns are at `at`. */
DEVICE void add_fragment(struct scores s[ROW_TILES], const struct two_steps a[ROW_TILES],
                         shared_at at, u32 f, u32 step, u64 live)
{
    u32 b[4];
    load_columns(b, at, 8 * f, step);
    UNROLL
    for (u32 m = 0; m < ROW_TILES; m++) {
        if (!has_fragment(live_of(live, m), f))
            continue;
        mma_16816(&s[m].at[f], &a[m].at[0], b[0], b[1]);
        if (step + 1 < STEPS)
            mma_16816(&s[m].at[f], &a[m].at[1], b[2], b[3]);
    }
}

/* Two steps of the live fragments. */
DEVICE void add_scores(struct scores s[ROW_TILES], const struct two_steps a[ROW_TILES],
                       const half_t *columns, u32 step, u64 live)
{
    const shared_at at = columns_at(columns, STEPS - step);
    UNROLL
    for (u32 f = 0; f < FRAGMENTS; f++)
        if (has_fragment(live_any(live), f))
            add_fragment(s, a, at, f, step, live);
}

/* ret = rows . columns, rows in registers; 0 where a fragment is not live. */
DEVICE void scores_of(struct scores ret[ROW_TILES], const struct rows rows[ROW_TILES],
                      const half_t *columns, u64 live)
{
    scores_clear(ret);
    UNROLL
    for (u32 step = 0; step < STEPS; step += 2) {
        struct two_steps a[ROW_TILES];
        UNROLL
        for (u32 m = 0; m < ROW_TILES; m++) {
            a[m].at[0] = rows[m].at[step];
            if (step + 1 < STEPS)
                a[m].at[1] = rows[m].at[step + 1];
        }
        add_scores(ret, a, columns, step, live);
    }
}

/* The same, rows read from shared memory for each use; `flip` is xored to each pair. Little is unrolled: wide
   heads would compile slowly. */
DEVICE void scores_of_shared(struct scores ret[ROW_TILES], const half_t *rows, u32 flip,
                             const half_t *columns, u64 live)
{
    scores_clear(ret);
    UNROLL_BY(SHARED_STEPS)
    for (u32 step = 0; step < STEPS; step += 2) {
        struct two_steps a[ROW_TILES];
        load_two_steps(a, rows, step);
        UNROLL
        for (u32 k = 0; k < 8 * ROW_TILES; k++)
            a[k / 8].at[k / 4 % 2].x[k % 4] ^= flip;
        add_scores(ret, a, columns, step, live);
    }
}

/* Two such products at once, of other rows and other columns, for one row tile. Written out: with add_fragment() dQ, dK and dV
   of D = 128 spill. */
DEVICE void scores_of_both(struct scores ret[2], const half_t *const rows[2],
                           const half_t *const columns[2], u64 live)
{
    scores_clear(&ret[0]);
    scores_clear(&ret[1]);
    UNROLL_BY(SHARED_STEPS)
    for (u32 step = 0; step < STEPS; step += 2) {
        const shared_at at[2] = {columns_at(columns[0], STEPS - step),
                                 columns_at(columns[1], STEPS - step)};
        struct frag_a a[2][2];
        UNROLL
        for (u32 k = 0; k < 2; k++) {
            load_rows(&a[k][0], rows[k], step);
            if (step + 1 < STEPS)
                load_rows(&a[k][1], rows[k], step + 1);
        }
        UNROLL
        for (u32 f = 0; f < FRAGMENTS; f++) {
            if (!has_fragment(live_of(live, 0), f))
                continue;
            UNROLL
            for (u32 k = 0; k < 2; k++) {
                u32 b[4];
                load_columns(b, at[k], 8 * f, step);
                mma_16816(&ret[k].at[f], &a[k][0], b[0], b[1]);
                if (step + 1 < STEPS)
                    mma_16816(&ret[k].at[f], &a[k][1], b[2], b[3]);
            }
        }
    }
}

/* Entries of 16 columns, rounded to halves, as the first operand. */
DEVICE void pack_entries(struct frag_a *a, const struct scores *entries, u32 pair)
{
    const struct frag_c *left = &entries->at[2 * pair], *right = left + 1;
    a->x[0] = half_pack(left->x[0], left->x[1]);
    a->x[1] = half_pack(left->x[2], left->x[3]);
    a->x[2] = half_pack(right->x[0], right->x[1]);
    a->x[3] = half_pack(right->x[2], right->x[3]);
}

/* sums += a . b: 16 columns, one step of the head. */
DEVICE void add_values(struct sums *sums, const struct frag_a *a, const u32 b[4], u32 step)
{
    mma_16816(&sums->at[2 * step], a, b[0], b[1]);
    mma_16816(&sums->at[2 * step + 1], a, b[2], b[3]);
}

/* sums += entries . columns; entries are 0 in fragments that are not live. */
DEVICE void accumulate(struct sums sums[ROW_TILES], const struct scores entries[ROW_TILES],
                       const half_t *columns, u64 live)
{
    const shared_at at = rows_at(columns);
    UNROLL
    for (u32 pair = 0; pair < FRAGMENTS / 2; pair++) {
        struct frag_a a[ROW_TILES];
        if (!has_pair(live_any(live), pair))
            continue;
        UNROLL
        for (u32 m = 0; m < ROW_TILES; m++)
            pack_entries(&a[m], &entries[m], pair);
        UNROLL
        for (u32 step = 0; step < STEPS; step++) {
            u32 b[4];
            load_values(b, at, 16 * pair, step);
            UNROLL
            for (u32 m = 0; m < ROW_TILES; m++)
                if (has_pair(live_of(live, m), pair))
                    add_values(&sums[m], &a[m], b, step);
        }
    }
}

/* The same for two kinds of entries of the same columns. */
DEVICE void accumulate_both(struct sums a[ROW_TILES], const struct scores of_a[ROW_TILES],
                            struct sums b[ROW_TILES], const struct scores of_b[ROW_TILES],
                            const half_t *columns, u64 live)
{
    const shared_at at = rows_at(columns);
    UNROLL
    for (u32 pair = 0; pair < FRAGMENTS / 2; pair++) {
        struct frag_a x[ROW_TILES], y[ROW_TILES];
        if (!has_pair(live_any(live), pair))
            continue;
        UNROLL
        for (u32 m = 0; m < ROW_TILES; m++) {
            pack_entries(&x[m], &of_a[m], pair);
            pack_entries(&y[m], &of_b[m], pair);
        }
        UNROLL
        for (u32 step = 0; step < STEPS; step++) {
            u32 c[4];
            load_values(c, at, 16 * pair, step);
            UNROLL
            for (u32 m = 0; m < ROW_TILES; m++) {
                if (!has_pair(live_of(live, m), pair))
                    continue;
                mma_16816(&a[m].at[2 * step], &x[m], c[0], c[1]);
                mma_16816(&b[m].at[2 * step], &y[m], c[0], c[1]);
                mma_16816(&a[m].at[2 * step + 1], &x[m], c[2], c[3]);
                mma_16816(&b[m].at[2 * step + 1], &y[m], c[2], c[3]);
            }
        }
    }
}

/* from -= what, times `low` and `high` for rows g and g + 8. */
DEVICE void sums_subtract(struct sums *from, const struct sums *what, float low, float high)
{
    UNROLL
    for (u32 k = 0; k < 2 * STEPS; k++) {
        from->at[k].x[0] -= low * what->at[k].x[0];
        from->at[k].x[1] -= low * what->at[k].x[1];
        from->at[k].x[2] -= high * what->at[k].x[2];
        from->at[k].x[3] -= high * what->at[k].x[3];
    }
}

/* Multiplies the sums of rows g and g + 8. */
DEVICE void sums_scale(struct sums *s, float low, float high)
{
    UNROLL
    for (u32 k = 0; k < 2 * STEPS; k++) {
        s->at[k].x[0] *= low;
        s->at[k].x[1] *= low;
        s->at[k].x[2] *= high;
        s->at[k].x[3] *= high;
    }
}

#endif
