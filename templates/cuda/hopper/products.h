/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of a warpgroup: the entries that its rows see, and the products that make and take them. */
#ifndef MASKC_CUDA_HOPPER_PRODUCTS_H
#define MASKC_CUDA_HOPPER_PRODUCTS_H
#include "cuda/hopper/warpgroup.h"

/* ---- which columns the lane's rows see ---- */

/* Words of each slot, shifted so that bit 8 j + e is column 8 j + 2 t + e. */
struct words {
    u32 row[2][ABI_STEP_SLOTS];
};

DEVICE void words_read(struct words *w, const struct warpgroup *g, u32 mode)
{
    const smem_t live =
        g->base + step_about_at(g->k, g->stage.at) + STEP_LIVE + 4 * g->first_slot;
    const smem_t patterns = g->base + patterns_at(g->k, g->stage.at, g->index) +
                            g->first_slot * HOPPER_PATTERN_BYTES + 4 * lane_row(g, 0);
    const u32 shift = 2 * quad_lane();
    mode >>= g->first_slot;
    UNROLL
    for (u32 s = 0; s < g->k->slots_at_once; s++) {
        u32 low = mode >> (MODE_SLOTS + s) & 1 ? smem_get_u32(live + 4 * s) >> shift : 0;
        u32 high = low;
        if (mode >> (MODE_PATTERNS + s) & 1) {
            low &= smem_get_u32(patterns + s * HOPPER_PATTERN_BYTES) >> shift;
            high &= smem_get_u32(patterns + s * HOPPER_PATTERN_BYTES + 32) >> shift;
        }
        w->row[0][s] = g->dead & 1 ? 0 : low;
        w->row[1][s] = g->dead & 2 ? 0 : high;
    }
}

/* Puts `with` where a row does not see. */
DEVICE void words_apply(const struct words *w, const struct kernel_shape *k, struct scores *s,
                        float with)
{
    UNROLL
    for (u32 j = 0; j < 4 * k->slots_at_once; j++) {
        UNROLL
        for (u32 e = 0; e < 4; e++) {
            const u32 bit = 1u << (j % 4 * 8 + e % 2);
            float *x = &s->x[4 * j + e];
            *x = w->row[e / 2][j / 4] & bit ? *x : with;
        }
    }
}

/* ---- products ---- */

enum { STEP_BYTES = 32, COLUMN_STEP_BYTES = 16 * 128 }; /* 16 positions; 16 columns */

/* Where step `of` (16 positions of the head) begins in an operand whose parts are that far apart. */
DEVICE u32 head_step(u32 of, u32 part_bytes)
{
    return of / 4 * part_bytes + of % 4 * STEP_BYTES;
}

DEVICE void read_rows(struct held_rows *r, const struct warpgroup *g, smem_t rows)
{
    const u32 row = 16 * warp_index(g) + lane() % 16;
    UNROLL
    for (u32 of = 0; of < STEPS; of++)
        smem_load4(r->x + 4 * of, rows + of / 4 * HOPPER_BOX_BYTES + 128 * row +
                                      16 * ((2 * (of % 4) + lane() / 16) ^ row % 8));
    hold_words(r->x, 4 * STEPS);
}

/* s = rows columns^T, the rows in shared memory, or those held. */
DEVICE void multiply_scores(struct scores *s, const struct kernel_shape *k, smem_t rows,
                            const struct held_rows *held, smem_t columns)
{
    const u64 first = matrix_descriptor(columns, 16);
    const u64 own = held ? 0 : matrix_descriptor(rows, 16);
    UNROLL
    for (u32 of = 0; of < STEPS; of++) {
        const u64 b = matrix_further(first, head_step(of, column_part(k)));
        if (held)
            wgmma_rk(32 * k->slots_at_once, s->x, held->x + 4 * of, b, of > 0);
        else
            wgmma_ss(32 * k->slots_at_once, s->x,
                     matrix_further(own, head_step(of, HOPPER_BOX_BYTES)), b, of > 0);
    }
}

/* o += entries columns */
DEVICE void multiply_columns(struct sums *o, const struct kernel_shape *k,
                             const struct halves *entries, smem_t columns)
{
    const u64 first = matrix_descriptor(columns, column_part(k));
    UNROLL
    for (u32 of = 0; of < 2 * k->slots_at_once; of++)
        wgmma_rs(16 * STEPS, o->x, entries->x + 4 * of,
                 matrix_further(first, of * COLUMN_STEP_BYTES), 1);
}

DEVICE void scores_pack(struct halves *to, const struct scores *s, const struct kernel_shape *k)
{
    UNROLL
    for (u32 j = 0; j < 8 * k->slots_at_once; j++)
        to->x[j] = half_pack(s->x[2 * j], s->x[2 * j + 1]);
}

DEVICE void hold_scores(struct scores *s, const struct kernel_shape *k)
{
    hold_floats(s->x, 16 * k->slots_at_once);
}

DEVICE void hold_halves(struct halves *p, const struct kernel_shape *k)
{
    hold_words(p->x, 8 * k->slots_at_once);
}

DEVICE void hold_sums(struct sums *o)
{
    hold_floats(o->x, SUMS);
}

DEVICE void sums_clear(struct sums *o)
{
    UNROLL
    for (u32 k = 0; k < SUMS; k++)
        o->x[k] = 0;
}

/* Changes the signs of the warpgroup's rows of an operand in shared memory. */
DEVICE void negate_rows(const struct warpgroup *g, smem_t rows)
{
    NO_UNROLL
    for (u32 at = 16 * g->thread; at < ROW_BYTES; at += 16 * WARPGROUP) {
        struct u32x4 x = smem_get_u32x4(rows + at);
        x.x ^= 0x80008000u;
        x.y ^= 0x80008000u;
        x.z ^= 0x80008000u;
        x.w ^= 0x80008000u;
        smem_put_u32x4(rows + at, x);
    }
    async_fence();
    warpgroup_sync(g);
}

#endif
