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

DEVICE struct work_item work_item_at(const struct abi_args *a, const struct abi_plan *plan,
                                     u32 index)
{
    struct work_item work;
    u32 first = MERGE_WORKS && opt_barrier(a->merge) ? plan->works - plan->merge : 0;
    u32 each = a->slice_batch, place = each == 1 ? index : index / each;
    struct abi_work entry = plan->work[first + place];
    work.index = index;
    work.b = a->first_batch + (index - place * each);
    work.h = entry.head;
    work.plan = plan;
    work.item = plan->items + entry.item;
    work_item_sequence(&work, a, plan == &a->transposed);
    work.global_row =
        ROW_PASS &&
        ((CUT_ROWS && work.item->partial_slots > 0) ||
         (work.item->pieces > 0 && plan->pieces[work.item->piece].kind == ABI_ROWS));
    return work;
}

/* Registers are few, so a work item is forgotten during the loop over columns. Its index is noted and the item found
   again after the loop. A barrier stands before each of the two. */
DEVICE void work_item_save(const struct work_item *work, u32 *notes)
{
    /* opt_barrier: keeps the address out of uniform registers, which ptxas would overwrite without a wait */
    if (THREAD == 0)
        shared_put_u32(notes + opt_barrier(NOTE_WORK), work->index);
}

DEVICE void work_item_restore(struct work_item *work, const struct abi_args *a,
                              const u32 *notes)
{
    *work = work_item_at(a, work->plan, shared_get_u32(notes + NOTE_WORK));
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

/* Starts copies of the warp's rows; zeros where they take no part. A lane has the same chunk of a row in every
   round. */
DEVICE void copy_row_block(half_t *to, const struct view *v, const struct work_item *work)
{
    enum { ROWS = 32 / CHUNKS }; /* of a round */
    const u32 thread = opt_barrier(THREAD), l = thread % 32, first = thread / 32 * WARP_ROWS;
    const u32 rows = warp_rows(work, work->length), chunk = l % CHUNKS, r = l / CHUNKS;
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

/* Writes the sums, each row times its `by`. `staging` is the row block's shared memory: the warp writes and reads its own
   rows, which before only its collective matrix loads read. */
DEVICE void store_row_block(const struct sums s[ROW_TILES], const float by[LANE_ROWS],
                            half_t *staging, const struct view *to,
                            const struct work_item *work)
{
    enum { ROWS = 32 / HEAD_CHUNKS }; /* of a round */
    const u32 thread = opt_barrier(THREAD), l = thread % 32, first = thread / 32 * WARP_ROWS;
    half_t *own = staging + first * PITCH;
    const u32 at = chunk_place(l / 4, 0) + 2 * (l % 4);
    UNROLL
    for (u32 m = 0; m < ROW_TILES; m++)
        stage_row_tile(&s[m], by[2 * m], by[2 * m + 1], own + m * 16 * PITCH, at);
    SYNC_WARP();
    const u32 rows = warp_rows(work, work->exist), chunk = l % HEAD_CHUNKS, r = l / HEAD_CHUNKS;
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
