/* SPDX-License-Identifier: Apache-2.0 */
/* Products on fragments: a warp holds 16 rows; column tiles have 32 columns, four fragments of 16 x 8. Fragments
   in which no row sees a column are left out: `live` has a bit for each column that is seen. Lane l holds rows g
   = l / 4 and g + 8, and columns 2t, 2t + 1 of each fragment, t = l % 4. */
#ifndef MASKC_CUDA_TILED_FRAGMENTS_H
#define MASKC_CUDA_TILED_FRAGMENTS_H
#include "cuda/common/matrix.h"
#include "cuda/common/numbers.h"

enum {
    STEPS = (HEAD_DIM + 15) / 16, /* of 16 positions of the head: a product takes one */
    CHUNKS = 2 * STEPS,           /* of 8 positions, 16 bytes */
    HEAD_CHUNKS = HEAD_DIM / 8,   /* of them in the tensors; the rest is zeros */
    PITCH = 8 * CHUNKS,           /* halves from row to row */
    MIXED = CHUNKS % 8 == 0   ? 8 /* chunks that are permuted among themselves */
            : CHUNKS % 4 == 0 ? 4
                              : 2,
    MIX_ROWS = 8 / MIXED, /* neighbouring rows that are permuted alike */
    FRAGMENTS = 4,        /* of a column tile of 32 */
    /* Unrolled pairs of steps where rows are in shared memory: few beside much other code or the registers of
       dropout. */
    SHARED_STEPS = DROPOUT              ? 1
                   : STEPS <= 4         ? 4
                   : BIAS || STEPS == 6 ? 1
                                        : 2,
    TILE_COLS = 8 * FRAGMENTS,
    ALL_APART = !BIAS && !DROPOUT && TRANSFORM == ABI_SOFTMAX,
};

#define ALL_LIVE 0xffffffffu

/* One number for each of the lane's entries of a column tile. */
struct scores {
    struct frag_c at[FRAGMENTS];
};

/* Sums over the head: 16 rows, two fragments for each step. */
struct sums {
    struct frag_c at[2 * STEPS];
};

/* The warp's rows as first operand, held in registers. */
struct rows {
    struct frag_a at[STEPS];
};

/* Whether some row of the warp sees a column of fragment f; of the 16 columns of a pair. */
DEVICE u32 is_live(u32 live, u32 f)
{
    return live >> (8 * f) & 0xff;
}

DEVICE u32 is_pair_live(u32 live, u32 pair)
{
    return live >> (16 * pair) & 0xffff;
}

/* Rows g (which 0) and g + 8 (which 1) of the warp's 16. */
DEVICE u32 lane_row(u32 which)
{
    return lane() / 4 + 8 * which;
}

DEVICE u32 lane_pair(void)
{
    return 2 * (quad_lane());
}

/* ---- rows in shared memory ---- */

/* Chunks of a row are permuted: eight rows of one chunk lie in different banks, and the chunks that a copy writes fill
   whole sectors of 32 bytes, which rows with padding would not. Rows are counted from a multiple of 8. */

/* Elements from the first row to a chunk of row r. Elements: halves, or floats in rows of as many. */
DEVICE u32 chunk_place(u32 r, u32 chunk)
{
    return r * PITCH + 8 * (chunk ^ r % 8 / MIX_ROWS);
}

/* The place of a chunk from that of chunk 0 of the same row. */
DEVICE u32 chunk_of(u32 place, u32 chunk)
{
    return (place ^ 8 * (chunk % MIXED)) + 8 * (chunk / MIXED * MIXED);
}

/* ---- loads ---- */

/* The same of an address. Constants (`row`, the fragment's first) are added last, in bytes: they become part of the
   instruction. */
DEVICE shared_at chunk_at(shared_at at, u32 chunk)
{
    return shared_flip(at, 16 * (chunk % MIXED)) + 16 * (chunk / MIXED * MIXED);
}

/* The lane's address in 16 rows: of chunk 0 or 1. */
DEVICE shared_at rows_at(const half_t *rows)
{
    return one_address(rows + chunk_place(lane() % 16, lane() / 16));
}

/* 16 rows, one step: the first operand. */
DEVICE void load_rows(struct frag_a *a, const half_t *rows, u32 step)
{
    matrix_load4(a->x, chunk_at(rows_at(rows), 2 * step));
}

/* The lane's address for loads of columns. With one step left its two chunks are loaded twice. */
DEVICE shared_at columns_at(const half_t *columns, u32 left)
{
    u32 l = lane(), chunk = left == 1 ? l / 8 % 2 : l / 8;
    return one_address(columns + chunk_place(l % 8, chunk));
}

/* 8 columns, two steps: the second operand of two products that sum along the head. */
DEVICE void load_columns(u32 r[4], shared_at at, u32 row, u32 step)
{
    matrix_load4(r, chunk_at(at, 2 * step) + 2 * row * PITCH);
}

/* 16 columns, one step: the second operand of two products that sum over columns. `at`: rows_at. */
DEVICE void load_values(u32 r[4], shared_at at, u32 row, u32 step)
{
    matrix_load4_transposed(r, chunk_at(at, 2 * step) + 2 * row * PITCH);
}

/* ---- products ---- */

DEVICE void scores_clear(struct scores *s)
{
    UNROLL
    for (u32 f = 0; f < FRAGMENTS; f++)
        s->at[f].x[0] = s->at[f].x[1] = s->at[f].x[2] = s->at[f].x[3] = 0;
}

DEVICE void sums_clear(struct sums *s)
{
    UNROLL
    for (u32 k = 0; k < 2 * STEPS; k++)
        s->at[k].x[0] = s->at[k].x[1] = s->at[k].x[2] = s->at[k].x[3] = 0;
}

/* Two steps of the live fragments. */
DEVICE void add_scores(struct scores *s, const struct frag_a a[2], const half_t *columns,
                       u32 step, u32 live)
{
    const shared_at at = columns_at(columns, STEPS - step);
    UNROLL
    for (u32 f = 0; f < FRAGMENTS; f++) {
        u32 b[4];
        if (!is_live(live, f))
            continue;
        load_columns(b, at, 8 * f, step);
        mma_16816(&s->at[f], &a[0], b[0], b[1]);
        if (step + 1 < STEPS)
            mma_16816(&s->at[f], &a[1], b[2], b[3]);
    }
}

/* ret = rows . columns, rows in registers; 0 where a fragment is not live. */
DEVICE void scores_of(struct scores *ret, const struct rows *rows, const half_t *columns,
                      u32 live)
{
    scores_clear(ret);
    UNROLL
    for (u32 step = 0; step < STEPS; step += 2)
        add_scores(ret, rows->at + step, columns, step, live);
}

/* The same, rows read from shared memory for each use; `flip` is xored to each pair. Little is unrolled: wide
   heads would compile slowly. */
DEVICE void scores_of_shared(struct scores *ret, const half_t *rows, u32 flip,
                             const half_t *columns, u32 live)
{
    scores_clear(ret);
    UNROLL_BY(SHARED_STEPS)
    for (u32 step = 0; step < STEPS; step += 2) {
        struct frag_a a[2];
        load_rows(&a[0], rows, step);
        if (step + 1 < STEPS)
            load_rows(&a[1], rows, step + 1);
        UNROLL
        for (u32 k = 0; k < 8; k++)
            a[k / 4].x[k % 4] ^= flip;
        add_scores(ret, a, columns, step, live);
    }
}

/* Two such products at once, of other rows and other columns. */
DEVICE void scores_of_both(struct scores ret[2], const half_t *const rows[2],
                           const half_t *const columns[2], u32 live)
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
            if (!is_live(live, f))
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
DEVICE void pack_entries(struct frag_a *a, const struct frag_c *left,
                         const struct frag_c *right)
{
    a->x[0] = half_pack(left->x[0], left->x[1]);
    a->x[1] = half_pack(left->x[2], left->x[3]);
    a->x[2] = half_pack(right->x[0], right->x[1]);
    a->x[3] = half_pack(right->x[2], right->x[3]);
}

/* sums += entries . columns; entries are 0 in fragments that are not live. */
DEVICE void accumulate(struct sums *sums, const struct scores *entries, const half_t *columns,
                       u32 live)
{
    const shared_at at = rows_at(columns);
    UNROLL
    for (u32 pair = 0; pair < FRAGMENTS / 2; pair++) {
        struct frag_a a;
        if (!is_pair_live(live, pair))
            continue;
        pack_entries(&a, &entries->at[2 * pair], &entries->at[2 * pair + 1]);
        UNROLL
        for (u32 step = 0; step < STEPS; step++) {
            u32 b[4];
            load_values(b, at, 16 * pair, step);
            mma_16816(&sums->at[2 * step], &a, b[0], b[1]);
            mma_16816(&sums->at[2 * step + 1], &a, b[2], b[3]);
        }
    }
}

/* The same for two kinds of entries of the same columns. */
DEVICE void accumulate_both(struct sums *a, const struct scores *of_a, struct sums *b,
                            const struct scores *of_b, const half_t *columns, u32 live)
{
    const shared_at at = rows_at(columns);
    UNROLL
    for (u32 pair = 0; pair < FRAGMENTS / 2; pair++) {
        struct frag_a x, y;
        if (!is_pair_live(live, pair))
            continue;
        pack_entries(&x, &of_a->at[2 * pair], &of_a->at[2 * pair + 1]);
        pack_entries(&y, &of_b->at[2 * pair], &of_b->at[2 * pair + 1]);
        UNROLL
        for (u32 step = 0; step < STEPS; step++) {
            u32 c[4];
            load_values(c, at, 16 * pair, step);
            mma_16816(&a->at[2 * step], &x, c[0], c[1]);
            mma_16816(&b->at[2 * step], &y, c[0], c[1]);
            mma_16816(&a->at[2 * step + 1], &x, c[2], c[3]);
            mma_16816(&b->at[2 * step + 1], &y, c[2], c[3]);
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
