/* SPDX-License-Identifier: Apache-2.0 */
/* Tiled family: work items, and the rows of a row block. A row block has WARP_ROWS rows for each warp, in shared
   memory; columns stream past them. A global row is an item of one row, for the whole block. */
#ifndef MASKC_CUDA_TILED_WORK_ITEM_H
#define MASKC_CUDA_TILED_WORK_ITEM_H
#include "cuda/common/bias.h"
#include "cuda/common/transform.h"
#include "cuda/common/work_item.h"
#include "cuda/tiled/notes.h"
#include "cuda/tiled/products.h"

/* Some rows are split: items store partial results and others merge them. */
enum { MERGE_WORKS = SHARED_ROWS || CUT_ROWS };

enum {
    OPERAND = TILE_COLS * PITCH,    /* halves: one operand of a column tile */
    ROW_BLOCK = BLOCK_ROWS * PITCH, /* of a row block */
};

/* The works of this launch. Those that merge are the last ones, in a launch of their own (the merge pass). */
DEVICE u32 work_item_count(const struct abi_args *a, const struct abi_plan *plan)
{
    u32 merges = MERGE_WORKS ? plan->merge : 0;
    return (MERGE_WORKS && opt_barrier(a->merge) ? merges : plan->works - merges) *
           a->slice_batch;
}

/* Waves of a launch: the grid is BLOCKS x WAVES. The GPU starts the blocks of a wave as those of the wave before end, which
   evens out works of different cost. A wave has half of the works that the waves before leave, the last wave all of
   them. The block that computes a work does not change its results. */
#ifndef MASKC_EMULATION
/* Read anew at each use: blockIdx.y and gridDim.y would stay in registers. */
#define WAVE  block_wave()
#define WAVES grid_waves()

DEVICE u32 block_wave(void)
{
    u32 ret;
    asm volatile("mov.u32 %0, %%ctaid.y;" : "=r"(ret));
    return ret;
}

DEVICE u32 grid_waves(void)
{
    u32 ret;
    asm volatile("mov.u32 %0, %%nctaid.y;" : "=r"(ret));
    return ret;
}
#endif

/* The block's first work, and the end of its wave's works. It has every BLOCKS-th of them. */
DEVICE u32 first_work(const struct abi_args *a, const struct abi_plan *plan)
{
    const u32 works = work_item_count(a, plan);
    return BLOCK + works - (works >> WAVE);
}

DEVICE u32 works_end(const struct abi_args *a, const struct abi_plan *plan)
{
    const u32 works = work_item_count(a, plan), next = WAVE + 1;
    return next < WAVES ? works - (works >> next) : works;
}

/* An entry file may define it as 0, where registers do not suffice: a work is then loaded when it begins. */
#ifndef READS_AHEAD
#define READS_AHEAD 1
#endif

/* What a block reads ahead of its works. A work's entry in the list, its item and its first piece are loads that depend on each
   other. A block loads them while the work before ends, and the entry even one work earlier. A warp holds the item and the
   piece, a word in each lane. */
struct ahead {
    struct abi_work work, then; /* the block's next work, and the one behind it */
    u32 item, piece;            /* words of the next work's item and first piece */
    u32 at;                     /* index of the next work */
};

enum {
    ITEM_WORDS = sizeof(struct abi_item) / 4,
    ITEM_PARTIAL_SLOTS = 13,
    ITEM_PIECE = 14,
    ITEM_PIECES = 15,
};

typedef char item_has_19_words[ITEM_WORDS == 19 ? 1 : -1];

/* Place in the work list, and sequence, of a work of this launch. Optimisation barriers: computed at each use. */
struct work_place {
    u32 entry, b;
};

DEVICE struct work_place work_place_of(const struct abi_args *a, const struct abi_plan *plan,
                                       u32 index)
{
    const u32 works = opt_barrier(plan->works), each = opt_barrier(a->slice_batch);
    const u32 first = MERGE_WORKS && opt_barrier(a->merge) ? works - plan->merge : 0;
    const u32 place = each == 1 ? index : index / each;
    const struct work_place ret = {first + place, a->first_batch + (index - place * each)};
    return ret;
}

/* Loads the entry of the work at `index`; behind the last work, the first one's. */
DEVICE void ahead_entry(struct ahead *x, const struct abi_args *a, const struct abi_plan *plan,
                        u32 index)
{
    const u32 there = index < work_item_count(a, plan) ? index : 0;
    if (READS_AHEAD)
        x->then = plan->work[work_place_of(a, plan, there).entry];
}

/* Loads the next work's item. */
DEVICE void ahead_item(struct ahead *x, const struct abi_plan *plan)
{
    const u32 *words = (const u32 *)(plan->items + x->work.item);
    if (READS_AHEAD)
        x->item = words[smaller(opt_barrier(THREAD) % 32, ITEM_WORDS - 1)];
}

/* Loads the item's first piece. */
DEVICE void ahead_piece(struct ahead *x, const struct abi_plan *plan)
{
    if (!READS_AHEAD)
        return;
    const u32 piece = SHUFFLE_FROM(x->item, ITEM_PIECE);
    const u32 *words = (const u32 *)(plan->pieces + piece);
    x->piece = SHUFFLE_FROM(x->item, ITEM_PIECES) ? words[opt_barrier(THREAD) % 4] : ABI_KINDS;
}

/* Loads all of it, one after the other, for a block's first work. */
DEVICE struct ahead ahead_start(const struct abi_args *a, const struct abi_plan *plan,
                                u32 first)
{
    struct ahead x = {{0, 0}, {0, 0}, 0, 0, 0};
    if (!READS_AHEAD)
        return x;
    ahead_entry(&x, a, plan, first);
    x.work = x.then;
    ahead_entry(&x, a, plan, first + BLOCKS);
    ahead_item(&x, plan);
    ahead_piece(&x, plan);
    return x;
}

/* True if the item is a global row. Reads the plan: for works that were not read ahead. */
DEVICE u32 is_global_row(const struct work_item *work)
{
    const struct abi_item *item = work->item;
    return (CUT_ROWS && item->partial_slots > 0) ||
           (item->pieces > 0 && work->plan->pieces[item->piece].kind == ABI_ROWS);
}

DEVICE u32 ahead_is_global_row(const struct ahead *x)
{
    return (CUT_ROWS && SHUFFLE_FROM(x->item, ITEM_PARTIAL_SLOTS) > 0) ||
           SHUFFLE_FROM(x->piece, 0) == ABI_ROWS;
}

/* The work at `index`, of which `x` was read ahead. */
DEVICE struct work_item work_item_at(const struct abi_args *a, const struct abi_plan *plan,
                                     u32 index, struct ahead *x)
{
    struct work_item work;
    x->at = index + BLOCKS;
    work.index = index;
    const struct work_place place = work_place_of(a, plan, index);
    if (!READS_AHEAD)
        x->work = plan->work[place.entry];
    work.b = place.b;
    work.h = x->work.head;
    work.plan = plan;
    work.item = plan->items + x->work.item;
    work_item_sequence(&work, a, plan == &a->transposed);
    work.global_row = ROW_PASS && (READS_AHEAD ? ahead_is_global_row(x) : is_global_row(&work));
    return work;
}

/* Registers are few, so a work item is forgotten during the loop over columns. It is noted and found again after the loop, as is
   the entry of the next work. Both the save and the restore follow a barrier. */
DEVICE void work_item_save(const struct work_item *work, const struct ahead *x, u32 *notes)
{
    const struct u32x4 here = {work->index, work->b, work->h,
                               (u32)(work->item - work->plan->items)};
    /* opt_barrier: keeps the address out of uniform registers, which ptxas would overwrite without a wait */
    if (THREAD == 0) {
        shared_put_u32x4(notes + opt_barrier(NOTE_WORK), here);
        shared_put_u32(notes + opt_barrier(NOTE_NEXT), x->then.head);
        shared_put_u32(notes + opt_barrier(NOTE_NEXT_ITEM), x->then.item);
        shared_put_u32(notes + opt_barrier(NOTE_NEXT_AT), x->at);
    }
}

/* Loads the next work's item and the entry behind it, too. The caller calls ahead_piece() once the item has arrived. */
DEVICE void work_item_restore(struct work_item *work, struct ahead *ahead,
                              const struct abi_args *a, const u32 *notes)
{
    const struct u32x4 x = shared_get_u32x4(notes + NOTE_WORK);
    const struct abi_plan *plan = work->plan;
    ahead->work.head = shared_get_u32(notes + NOTE_NEXT);
    ahead->work.item = shared_get_u32(notes + NOTE_NEXT_ITEM);
    ahead_item(ahead, plan);
    ahead->at = shared_get_u32(notes + NOTE_NEXT_AT);
    ahead_entry(ahead, a, plan, 2 * ahead->at - x.x);
    work->index = x.x;
    work->b = x.y;
    work->h = x.z;
    work->item = plan->items + x.w;
    work_item_sequence(work, a, plan == &a->transposed);
}

/* Goes on to the next work where this one was not forgotten. */
DEVICE void ahead_next(struct ahead *x, const struct work_item *work)
{
    x->work = x->then;
    ahead_item(x, work->plan);
    ahead_entry(x, work->a, work->plan, 2 * x->at - work->index);
    ahead_piece(x, work->plan);
}

/* ---- rows of a row block ---- */

DEVICE u32 row_position(const struct work_item *work, u32 r)
{
    return work->item->row0 + work->item->step * r;
}

/* Whether row r of the row block is the item's and below `end`. */
DEVICE u32 item_has_row(const struct work_item *work, u32 r, u32 end)
{
    return r < work->item->rows && (work->item->own[r / 32] >> (r % 32) & 1) &&
           row_position(work, r) < end;
}

/* The lane's row of the row block: which < LANE_ROWS. Optimisation barrier: computed at each use, which is seldom. */
DEVICE u32 block_row(u32 which)
{
    const u32 thread = opt_barrier(THREAD);
    return thread / 32 * WARP_ROWS + thread % 32 / 4 + 8 * which;
}

/* LSE to base 2; sparsegen's tau as it is. A row whose bias is -inf everywhere has LSE = -inf: +inf then makes P
   = 0. */
DEVICE float scaled_lse(float lse)
{
    if (ADD_BIAS && TRANSFORM == ABI_SOFTMAX && lse == NEGATIVE_INFINITY)
        return -lse;
    return TRANSFORM == ABI_SPARSEGEN ? lse : lse * LOG2_E;
}

/* Stores delta = x + delta_correction, and for an additive bias what that rounds off. */
DEVICE void delta_put(const struct abi_args *a, const struct work_item *work, u32 row, float x,
                      float delta_correction)
{
    float *to = delta_of(a, work) + row, sum = x + delta_correction, back = sum - x;
    *to = sum;
    if (ADD_BIAS)
        *bias_delta_correction(a, to) = (x - (sum - back)) + (delta_correction - back);
}

/* ---- row blocks from and to the tensors: each warp its own rows ---- */

/* The warp's rows of a row block in shared memory, in halves from its first. */
DEVICE u32 warp_place(void)
{
    return THREAD / 32 * WARP_ROWS * PITCH;
}

/* A bit for each of the warp's rows that is the item's and below `end`. */
DEVICE u32 warp_rows(const struct work_item *work, u32 end)
{
    const u32 thread = opt_barrier(THREAD), row = thread % WARP_ROWS;
    return warp_or(item_has_row(work, thread / 32 * WARP_ROWS + row, end) << row);
}

/* Starts copies of the warp's `rows`, a bit for each; zeros for the others. A lane has the same chunk of a row in every
   round. */
DEVICE void copy_row_block(half_t *to, const struct view *v, const struct work_item *work,
                           u32 rows)
{
    enum { ROWS = 32 / CHUNKS }; /* of a round */
    const u32 thread = opt_barrier(THREAD), l = thread % 32, first = thread / 32 * WARP_ROWS;
    const u32 chunk = l % CHUNKS, r = l / CHUNKS;
    const i64 step = work->item->step * v->row;
    const u8 *from = v->data + row_position(work, first + r) * v->row + 16 * chunk;
    to += first * PITCH;
    UNROLL_4
    for (u32 k = 0; k < WARP_ROWS; k += ROWS) {
        const u32 there = chunk < HEAD_CHUNKS && rows >> (k + r) & 1;
        if (r < ROWS && k + r < WARP_ROWS)
            copy_async_16(to + chunk_place(k + r, chunk), there ? from : v->data, there);
        from += ROWS * step;
    }
}

/* A row tile's rows g times `low` and rows g + 8 times `high`, rounded to halves, to its rows in shared memory. `at`: the
   lane's place there. */
DEVICE void stage_row_tile(const struct sums *s, float low, float high, half_t *own, u32 at)
{
    UNROLL
    for (u32 k = 0; k < 2 * STEPS; k++) {
        half_t *place = own + chunk_of(at, k);
        shared_put_u32(place, half_pack(s->at[k].x[0] * low, s->at[k].x[1] * low));
        shared_put_u32(place + 8 * PITCH,
                       half_pack(s->at[k].x[2] * high, s->at[k].x[3] * high));
    }
}

/* Writes the sums of the warp's `rows`, each row times its `by`. `staging` is the row block's shared memory: the warp writes and
   reads its own rows, which before only its collective matrix loads read. */
DEVICE void store_row_block(const struct sums s[ROW_TILES], const float by[LANE_ROWS],
                            half_t *staging, const struct view *to,
                            const struct work_item *work, u32 rows)
{
    enum { ROWS = 32 / HEAD_CHUNKS }; /* of a round */
    const u32 thread = opt_barrier(THREAD), l = thread % 32, first = thread / 32 * WARP_ROWS;
    half_t *own = staging + first * PITCH;
    const u32 at = chunk_place(l / 4, 0) + 2 * (l % 4);
    UNROLL
    for (u32 m = 0; m < ROW_TILES; m++)
        stage_row_tile(&s[m], by[2 * m], by[2 * m + 1], own + m * 16 * PITCH, at);
    SYNC_WARP();
    const u32 chunk = l % HEAD_CHUNKS, r = l / HEAD_CHUNKS;
    const i64 step = work->item->step * to->row;
    u8 *there = to->data + row_position(work, first + r) * to->row + 16 * chunk;
    UNROLL_4
    for (u32 k = 0; k < WARP_ROWS; k += ROWS) {
        if (r < ROWS && k + r < WARP_ROWS && rows >> (k + r) & 1)
            *(struct u32x4 *)there = shared_get_u32x4(own + chunk_place(k + r, chunk));
        there += ROWS * step;
    }
}

#endif
