/* SPDX-License-Identifier: Apache-2.0 */
/* Shape of a kernel of cuda_hopper and its layout in shared memory. Functions take the shape as a constant: after
   inlining every number below is one.

       rows       [row buffers][operands][warpgroups][parts][64 rows][128 bytes]
       columns    [stages][2 operands][parts][32 x slots rows][128 bytes]
       patterns   [stages][warpgroups][slots][64 words]
       numbers    [stages][LSE, delta][32 x slots floats]         dK and dV
       about      [stages] a step, [row buffers] an item
       barriers

   A part is 64 positions of the head. Row r of a part lies under the swizzle of 128 bytes: its chunk c of 16 bytes at chunk
   c ^ (r % 8). */
#ifndef MASKC_CUDA_HOPPER_SHAPE_H
#define MASKC_CUDA_HOPPER_SHAPE_H
#include "cuda/common/work_item.h"
#include "cuda/hopper/args.h"
#include "cuda/hopper/device.h"
#include "cuda/hopper/sizes.h"

enum {
    PARTS = (HEAD_DIM + HOPPER_PART - 1) / HOPPER_PART,
    STEPS = (HEAD_DIM + 15) / 16, /* products of 16 positions of the head */
    HEAD_CHUNKS = HEAD_DIM / 8,   /* of 16 bytes */
    ROW_BYTES = PARTS * HOPPER_BOX_BYTES,
    SLOT_COLUMNS = ABI_TILE_COLS,
    WARPGROUP = 128, /* threads */
};

struct kernel_shape {
    u32 warpgroups, slots, stages, row_buffers;
    u32 slots_at_once; /* of a step: less than all where registers do not suffice */
    u32 operands;      /* of the rows: 1, 2 or 3 */
    u32 stage_parts;   /* 2: the two operands of a stage have barriers of their own */
    u32 numbers;       /* 1: LSE and delta of the columns come with a stage */
    u32 rows_held;     /* row operands that stay in registers */
    u32 in_turn;       /* 1: warpgroups issue products in turn where the group allows it */
    u32 wait_sums;     /* 1: a step's sums end before the next step's products begin */
    u32 rows_are_keys; /* 1: over the transposed plan */
};

/* ---- bytes from the start of shared memory ---- */

DEVICE u32 column_part(const struct kernel_shape *k)
{
    return k->slots * HOPPER_SLOT_BYTES;
}

DEVICE u32 column_bytes(const struct kernel_shape *k)
{
    return PARTS * column_part(k);
}

DEVICE u32 rows_at(const struct kernel_shape *k, u32 buffer, u32 operand, u32 warpgroup)
{
    return ((buffer * k->operands + operand) * k->warpgroups + warpgroup) * ROW_BYTES;
}

DEVICE u32 columns_at(const struct kernel_shape *k, u32 stage, u32 operand)
{
    return rows_at(k, k->row_buffers, 0, 0) + (2 * stage + operand) * column_bytes(k);
}

DEVICE u32 patterns_at(const struct kernel_shape *k, u32 stage, u32 warpgroup)
{
    return columns_at(k, k->stages, 0) +
           (stage * k->warpgroups + warpgroup) * k->slots * HOPPER_PATTERN_BYTES;
}

DEVICE u32 numbers_at(const struct kernel_shape *k, u32 stage)
{
    return patterns_at(k, k->stages, 0) +
           (k->numbers ? stage * k->slots * HOPPER_SUMS_BYTES(1, 1) : 0);
}

DEVICE u32 step_about_at(const struct kernel_shape *k, u32 stage)
{
    return numbers_at(k, k->stages) + stage * HOPPER_HAS_BYTES;
}

DEVICE u32 item_about_at(const struct kernel_shape *k, u32 buffer)
{
    return step_about_at(k, k->stages) + buffer * HOPPER_ITEM_BYTES;
}

/* ---- barriers: an operand of the rows or of the columns is there, or is given back ---- */

DEVICE u32 barrier_at(const struct kernel_shape *k, u32 index)
{
    return item_about_at(k, k->row_buffers) + 8 * index;
}

DEVICE u32 rows_full(u32 buffer)
{
    return buffer;
}

DEVICE u32 rows_empty(const struct kernel_shape *k, u32 buffer)
{
    return k->row_buffers + buffer;
}

DEVICE u32 stage_full(const struct kernel_shape *k, u32 stage, u32 operand)
{
    return 2 * k->row_buffers + stage * k->stage_parts + operand;
}

DEVICE u32 stage_empty(const struct kernel_shape *k, u32 stage, u32 operand)
{
    return stage_full(k, k->stages + stage, operand);
}

DEVICE u32 barrier_count(const struct kernel_shape *k)
{
    return stage_full(k, 2 * k->stages, 0);
}

/* Arrivals that complete a phase: full, the copying warp's; rows_empty, each warpgroup's; stage_empty, each warp's, since
   all warps read patterns. */
DEVICE u32 barrier_arrivals(const struct kernel_shape *k, u32 index)
{
    if (index < k->row_buffers)
        return 1;
    if (index < 2 * k->row_buffers)
        return k->warpgroups;
    return index < stage_empty(k, 0, 0) ? 1 : 4 * k->warpgroups;
}

/* ---- where a reader or writer of a ring of buffers is ---- */

struct ring {
    u32 at, phase;
};

DEVICE void ring_advance(struct ring *p, u32 size)
{
    if (++p->at == size) {
        p->at = 0;
        p->phase ^= 1;
    }
}

/* ---- the works of a block ---- */

/* Snake order: dear works come first in the list, so that blocks with a dear one get a cheap one next. */
DEVICE u32 work_place(u32 round)
{
    return round * BLOCKS + (round & 1 ? BLOCKS - 1 - BLOCK : BLOCK);
}

DEVICE u32 work_count(const struct hopper_args *a)
{
    return a->steps.works * a->a.slice_batch;
}

/* ---- what the copying warp tells the warpgroups ---- */

/* About a step: of each slot its first column, then its live columns, then a mode for each warpgroup. */
enum {
    STEP_LIVE = 16,
    STEP_MODE = 32,

    MODE_NOTHING = 0,
    MODE_WHOLE = 1, /* every row sees every column of every slot */
    MODE_SOME = 2,  /* plus bits of slots, see below */
    MODE_LAST = 4,  /* and no step of the item follows */
    MODE_CLEAR = 8, /* MODE_SOME: what rows do not see may be anything, even NaN */
    MODE_NEVER =
        ~MODE_LAST, /* a value that no mode has, and that the compiler cannot rule out */
};

/* First bits of MODE_SOME: of slots that have something, and of those under a pattern. */
enum { MODE_SLOTS = 8, MODE_PATTERNS = 16 };

/* About an item: for each warpgroup row0, two words of owned rows, flags; then what all have in common. */
enum {
    ITEM_COMMON = 64, /* bytes: b, h, first tensor row, length */
    ITEM_MORE =
        80, /* rows that exist, in_turn, whether there are steps, whether another item follows */
    ITEM_PLACES =
        96, /* queries: bytes from args.lse to LSE, from args.delta to delta and to LSE to base 2 */
    ITEM_VALUES = 128, /* dQ: of each warp of each warpgroup two numbers about V (queries.cu) */

    ROWS_THERE = 1,  /* the warpgroup has a row block */
    ROWS_CROSS = 2,  /* the sequence ends within it */
    ROWS_BY_BOX = 4, /* its output may leave as one box */
    ROWS_PARTIAL =
        8, /* a part of a global row: the second word of owned rows is its partial slot */
};

#endif
