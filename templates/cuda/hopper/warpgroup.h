/* SPDX-License-Identifier: Apache-2.0 */
/* A warpgroup: 64 rows, 16 for each warp. Lane l of a warp holds rows g = l / 4 and g + 8 of its 16, and columns 8 j + 2 t and
   8 j + 2 t + 1 of the scores, t = l % 4, as float x[4 j + e]: e = 0, 1 of row g, e = 2, 3 of row g + 8. */
#ifndef MASKC_CUDA_HOPPER_WARPGROUP_H
#define MASKC_CUDA_HOPPER_WARPGROUP_H
#include "cuda/hopper/copy.h"

enum {
    SCORES = 16 * ABI_STEP_SLOTS, /* of a lane at most: 64 rows x 128 columns */
    SUMS = 8 * STEPS,             /* of a lane: 64 rows x 16 STEPS head dims */
};

struct scores {
    float x[SCORES];
};

struct sums {
    float x[SUMS];
};

/* P or dS in 16 bits, as the first operand of a product over the columns. */
struct halves {
    u32 x[SCORES / 2];
};

/* Rows of a warp as the first operand of a product over the head. */
struct held_rows {
    u32 x[4 * STEPS];
};

struct warpgroup {
    const struct hopper_args *a;
    const struct kernel_shape *k;
    smem_t base;
    u32 index;  /* in the block */
    u32 thread; /* in the warpgroup */
    struct ring rows, stage;
    u32 first_slot; /* with fewer slots at once: the first of these */
    u32 owed;       /* the rows of the last item are to be given back */
    u32 more;       /* another item follows */
    u32 in_turn;    /* of the item: warpgroups take turns */
    u32 alive;      /* some of the rows take part: their operands are there */
    u32 dead;       /* bit k: the lane's row k takes no part */
};

/* The step at hand. */
struct step_now {
    u32 mode;
    u32 held; /* it has nothing, and is to be given back */
    u32 last; /* no step of the item follows */
};

DEVICE u32 warp_index(const struct warpgroup *g)
{
    return g->thread / 32;
}

/* The lane's row 0 or 1 of the row block. */
DEVICE u32 lane_row(const struct warpgroup *g, u32 which)
{
    return 16 * warp_index(g) + lane() / 4 + 8 * which;
}

DEVICE smem_t barrier_of(const struct warpgroup *g, u32 index)
{
    return g->base + barrier_at(g->k, index);
}

/* All threads of the warpgroup. */
DEVICE void warpgroup_sync(const struct warpgroup *g)
{
    group_sync(1 + g->index, WARPGROUP);
}

DEVICE struct warpgroup warpgroup_start(const struct hopper_args *a,
                                        const struct kernel_shape *k, smem_t base)
{
    struct warpgroup g;
    g.a = a;
    g.k = k;
    g.base = base;
    g.index = uniform(THREAD / WARPGROUP);
    g.thread = THREAD % WARPGROUP;
    g.rows.at = g.rows.phase = g.stage.at = g.stage.phase = 0;
    g.more = BLOCK < work_count(a);
    g.first_slot = g.owed = g.in_turn = g.alive = g.dead = 0;
    return g;
}

/* ---- turns: one warpgroup issues products while the others work on scores ---- */

enum { FIRST_TURN = 8 }; /* number of a named barrier */

DEVICE void turn_wait(const struct warpgroup *g)
{
    if (g->k->in_turn && g->in_turn)
        group_sync(FIRST_TURN + g->index, 2 * WARPGROUP);
}

DEVICE void turn_give(const struct warpgroup *g, u32 from)
{
    const u32 next = from + 1 == g->k->warpgroups ? 0 : from + 1;
    group_arrive(FIRST_TURN + next, 2 * WARPGROUP);
}

DEVICE void turn_pass(const struct warpgroup *g)
{
    if (g->k->in_turn && g->in_turn)
        turn_give(g, g->index);
}

/* The first warpgroup has the first turn. */
DEVICE void turn_start(const struct warpgroup *g)
{
    if (g->k->in_turn && g->index == g->k->warpgroups - 1)
        turn_give(g, g->index);
}

/* ---- items ---- */

DEVICE smem_t own_rows(const struct warpgroup *g, u32 operand)
{
    return g->base + rows_at(g->k, g->rows.at, operand, g->index);
}

DEVICE smem_t item_about(const struct warpgroup *g)
{
    return g->base + item_about_at(g->k, g->rows.at);
}

/* Waits for the next item's rows; returns whether it has steps. */
DEVICE u32 item_start(struct warpgroup *g)
{
    const smem_t about = item_about(g);
    mbarrier_wait(barrier_of(g, rows_full(g->rows.at)), g->rows.phase);
    const u32 row0 = smem_get_u32(about + 16 * g->index);
    const u32 flags = smem_get_u32(about + 16 * g->index + 12);
    const u32 length = smem_get_u32(about + ITEM_COMMON + 12);
    const struct u32x4 told = smem_get_u32x4(about + ITEM_MORE);
    g->alive = uniform(flags & ROWS_THERE && row0 < length);
    g->in_turn = g->k->in_turn ? uniform(told.y) : 0;
    g->more = uniform(told.w);
    g->dead = (row0 + lane_row(g, 0) >= length) | (row0 + lane_row(g, 1) >= length) << 1;
    return uniform(told.z);
}

/* Reads the item's data again: registers are few during the loop over steps. */
DEVICE struct work_item item_again(const struct warpgroup *g, struct u32x4 *block)
{
    const smem_t about = item_about(g);
    const struct u32x4 common = smem_get_u32x4(about + ITEM_COMMON);
    struct work_item work;
    *block = smem_get_u32x4(about + 16 * g->index);
    work.a = &g->a->a;
    work.b = common.x;
    work.h = common.y;
    work.first = common.z;
    work.length = common.w;
    work.exist = smem_get_u32(about + ITEM_MORE);
    return work;
}

/* A number of the lane's row 0 that is so many bytes after `base`. Row 1 is 8 numbers further. */
DEVICE float *number_place(const struct warpgroup *g, const float *base, u32 low, u32 high,
                           u32 row0)
{
    u8 *at = (u8 *)base + ((u64)high << 32 | low);
    return (float *)at + (row0 + lane_row(g, 0));
}

/* Bit k: the lane's row k is the item's own, and below `end`. A part of a global row has no second word. */
DEVICE u32 has_rows(const struct warpgroup *g, const struct u32x4 *block, u32 end)
{
    const u32 second = CUT_ROWS && block->w & ROWS_PARTIAL ? 0 : block->z, row = lane_row(g, 0);
    const u32 own = (warp_index(g) < 2 ? block->y : second) >> row % 32;
    return (own & 1 && block->x + row < end) | (own >> 8 & 1 && block->x + row + 8 < end) << 1;
}

/* A part of a global row has no second word. */
DEVICE u32 has_row(const struct u32x4 *block, u32 row, u32 end)
{
    const u32 second = CUT_ROWS && block->w & ROWS_PARTIAL ? 0 : block->z;
    return (row < 32 ? block->y : second) >> (row % 32) & 1 && block->x + row < end;
}

/* Gives back the rows of the item before, whose output has left shared memory by now. */
DEVICE void give_back_rows(struct warpgroup *g)
{
    const u32 before = g->rows.at ? g->rows.at - 1 : g->k->row_buffers - 1;
    if (g->k->row_buffers == 1)
        return;
    bulk_wait_read();
    mbarrier_arrive_if(barrier_of(g, rows_empty(g->k, before)), g->thread == 0 && g->owed);
    g->owed = 0;
}

DEVICE void item_end(struct warpgroup *g)
{
    if (g->k->row_buffers == 1) {
        bulk_wait_read();
        mbarrier_arrive_if(barrier_of(g, rows_empty(g->k, 0)), g->thread == 0);
    }
    g->owed = g->k->row_buffers > 1;
    ring_advance(&g->rows, g->k->row_buffers);
}

/* ---- steps ---- */

DEVICE void step_read(const struct warpgroup *g, struct step_now *now)
{
    const smem_t about = g->base + step_about_at(g->k, g->stage.at);
    mbarrier_wait(barrier_of(g, stage_full(g->k, g->stage.at, 0)), g->stage.phase);
    const u32 told = uniform(smem_get_u32(about + STEP_MODE + 4 * g->index));
    now->mode = told & ~(u32)MODE_LAST;
    now->last = told & MODE_LAST;
}

/* The next step's mode; 0 at the item's end, 0 with now->held if it has nothing for this warpgroup. */
DEVICE u32 step_next(const struct warpgroup *g, struct step_now *now)
{
    if (now->last)
        return MODE_NOTHING;
    step_read(g, now);
    now->held = now->mode == MODE_NOTHING;
    return now->mode;
}

DEVICE void stage_give_back(const struct warpgroup *g, u32 stage, u32 operand)
{
    mbarrier_arrive_if(barrier_of(g, stage_empty(g->k, stage, operand)), lane() == 0);
}

DEVICE void step_done(struct warpgroup *g)
{
    ring_advance(&g->stage, g->k->stages);
}

/* Passes over steps where the warpgroup has nothing; returns 0 at the end of the item. A step is given back only when it is
   there: else a warp might arrive twice in a phase. */
DEVICE u32 step_find(struct warpgroup *g, struct step_now *now)
{
    NO_UNROLL
    while (1) {
        if (!now->held && step_next(g, now))
            return 1;
        if (!now->held)
            return 0;
        if (g->k->stage_parts == 2)
            mbarrier_wait(barrier_of(g, stage_full(g->k, g->stage.at, 1)), g->stage.phase);
        UNROLL
        for (u32 operand = 0; operand < g->k->stage_parts; operand++)
            stage_give_back(g, g->stage.at, operand);
        step_done(g);
        now->held = 0;
    }
}

/* ---- the block ---- */

/* Barriers are made by one thread; then everybody may use them. */
DEVICE void block_start(const struct kernel_shape *k, smem_t base)
{
    if (THREAD == 0) {
        for (u32 x = 0; x < barrier_count(k); x++)
            mbarrier_init(base + barrier_at(k, x), barrier_arrivals(k, x));
        mbarrier_init_fence();
    }
    SYNC();
}

#endif
