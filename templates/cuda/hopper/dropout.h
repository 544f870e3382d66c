/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: which of the lane's entries of a slot are kept, bit 4 j + e for entry e of columns 8 j .. 8 j + 7. Entries that are
   not aligned take a Philox call each (common/dropout.h). */
#ifndef MASKC_CUDA_HOPPER_DROPOUT_H
#define MASKC_CUDA_HOPPER_DROPOUT_H
#include "cuda/hopper/partial.h"
#define PHILOX_UNROLL UNROLL
#include "cuda/common/dropout.h"

struct drop {
    struct draws draws;
    const u32 *columns; /* index lists of the gathers */
    u32 row0;
    u32 rows_are_keys;
};

DEVICE struct drop drop_of(const struct warpgroup *g)
{
    const struct abi_args *a = &g->a->a;
    struct u32x4 block;
    const struct work_item work = item_again(g, &block);
    struct drop d;
    d.draws.a = a;
    d.draws.sample = dropout_sample(a, work.b);
    d.draws.h = work.h;
    d.columns = g->k->rows_are_keys ? a->transposed.columns : a->forward.columns;
    d.row0 = block.x;
    d.rows_are_keys = g->k->rows_are_keys;
    return d;
}

/* Any rows, any columns. */
DEVICE u32 kept_elsewhere(const struct drop *d, u32 row, u32 column, u32 live)
{
    u32 kept = 0;
    NO_UNROLL
    for (u32 k = 0; k < 16; k++) {
        const u32 slot = 8 * (k / 4) + 2 * quad_lane() + k % 2, own = row + 8 * (k / 2 % 2);
        if (!(live >> slot & 1))
            continue;
        const u32 other =
            column & ABI_GATHERED ? d->columns[(column & ~ABI_GATHERED) + slot] : column + slot;
        const u32 i = d->rows_are_keys ? other : own, j = d->rows_are_keys ? own : other;
        kept |= entry_kept(d->draws, i, j) << k;
    }
    return kept;
}

/* Kept bits of slot s of the current stage. */
DEVICE u32 slot_kept(const struct warpgroup *g, const struct drop *d, u32 s)
{
    const smem_t about = g->base + step_about_at(g->k, g->stage.at);
    const u32 live = smem_get_u32(about + STEP_LIVE + 4 * s);
    const u32 column = smem_get_u32(about + 4 * s), row = d->row0 + lane_row(g, 0);
    if (!live)
        return 0;
    if (column & ABI_GATHERED || d->row0 % 16)
        return kept_elsewhere(d, row, column, live);
    return d->rows_are_keys ? kept_of_keys(d->draws, row, column) |
                                  kept_of_keys(d->draws, row, column + 16) << 8
                            : kept_of_queries(d->draws, row, column) |
                                  kept_of_queries(d->draws, row, column + 16) << 8;
}

/* Bits of all slots, two to a word. */
struct kept {
    u32 x[ABI_STEP_SLOTS / 2];
};

DEVICE void kept_read(struct kept *kept, const struct warpgroup *g)
{
    if (!DROPOUT)
        return;
    kept->x[0] = kept->x[1] = 0xffffffffu;
    if (!g->a->a.keep_below)
        return;
    const struct drop d = drop_of(g);
    kept->x[0] = kept->x[1] = 0;
    NO_UNROLL
    for (u32 s = 0; s < g->k->slots_at_once; s++) {
        const u32 bits = slot_kept(g, &d, g->first_slot + s) << 16 * (s % 2);
        kept->x[0] |= s < 2 ? bits : 0;
        kept->x[1] |= s < 2 ? 0 : bits;
    }
}

/* Entry 4 j + e times keep_scale, or 0. */
DEVICE float kept_times(const struct kept *kept, const struct abi_args *a, u32 entry, float x)
{
    if (!DROPOUT)
        return x;
    return kept->x[entry / 32] >> entry % 32 & 1 ? x * a->keep_scale : 0;
}

DEVICE void kept_apply(const struct kept *kept, const struct warpgroup *g, struct scores *s)
{
    UNROLL
    for (u32 x = 0; DROPOUT && x < 16 * g->k->slots_at_once; x++)
        s->x[x] = kept_times(kept, &g->a->a, x, s->x[x]);
}

#endif
