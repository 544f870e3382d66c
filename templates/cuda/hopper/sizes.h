/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of a block of cuda_hopper, in bytes and in the order of its parts, from the numbers of a kernel shape. The
   planner (gen/family) asks for it by these; the templates hold their layouts against them. Plain C without headers. */
#ifndef MASKC_CUDA_HOPPER_SIZES_H
#define MASKC_CUDA_HOPPER_SIZES_H

enum {
    HOPPER_BOX_BYTES = 64 * 128,  /* 64 rows of 64 positions of a head */
    HOPPER_SLOT_BYTES = 32 * 128, /* 32 of them: a slot of a step */
    HOPPER_PATTERN_BYTES = 64 * 4,
    HOPPER_HAS_BYTES = 64,   /* of a stage: what each warpgroup has there */
    HOPPER_ITEM_BYTES = 256, /* of a row buffer: about its group */
    HOPPER_SLACK = 1024,     /* operands begin at a multiple of it */
    /* operands of the row blocks: Q; Q, dO and O; K and V */
    HOPPER_FORWARD_OPERANDS = 1,
    HOPPER_QUERY_OPERANDS = 3,
    HOPPER_KEY_OPERANDS = 2,
    /* mbarriers of a stage: K and V have their own in the forward pass */
    HOPPER_FORWARD_BARRIERS = 4,
    HOPPER_BACKWARD_BARRIERS = 2,
};

/* Parts of 64 positions of a head. */
#define HOPPER_PARTS(head_dim) (((head_dim) + 63) / 64)
#define HOPPER_ROWS_BYTES(row_buffers, operands, warpgroups, head_dim) \
    ((row_buffers) * (operands) * (warpgroups)*HOPPER_PARTS(head_dim) * HOPPER_BOX_BYTES)
/* Both operands that stream. */
#define HOPPER_STAGES_BYTES(stages, slots, head_dim) \
    (2 * (stages) * (slots)*HOPPER_PARTS(head_dim) * HOPPER_SLOT_BYTES)
#define HOPPER_PATTERNS_BYTES(stages, warpgroups, slots) \
    ((stages) * (warpgroups) * (slots)*HOPPER_PATTERN_BYTES)
/* LSE and delta of the columns, where rows are keys. */
#define HOPPER_SUMS_BYTES(stages, slots) ((stages)*2 * (slots)*32 * 4)
#define HOPPER_BARRIERS_BYTES(row_buffers, stages, barriers) \
    (8 * (2 * (row_buffers) + (barriers) * (stages)))
#define HOPPER_SHARED_BYTES(operands, barriers, sums, warpgroups, slots, stages, row_buffers, \
                            head_dim)                                                         \
    (HOPPER_ROWS_BYTES(row_buffers, operands, warpgroups, head_dim) +                         \
     HOPPER_STAGES_BYTES(stages, slots, head_dim) +                                           \
     HOPPER_PATTERNS_BYTES(stages, warpgroups, slots) +                                       \
     (sums)*HOPPER_SUMS_BYTES(stages, slots) + (stages)*HOPPER_HAS_BYTES +                    \
     (row_buffers)*HOPPER_ITEM_BYTES + HOPPER_BARRIERS_BYTES(row_buffers, stages, barriers) + \
     HOPPER_SLACK)

#define HOPPER_FORWARD_BYTES(warpgroups, slots, stages, row_buffers, head_dim)           \
    HOPPER_SHARED_BYTES(HOPPER_FORWARD_OPERANDS, HOPPER_FORWARD_BARRIERS, 0, warpgroups, \
                        slots, stages, row_buffers, head_dim)
#define HOPPER_QUERY_BYTES(warpgroups, slots, stages, row_buffers, head_dim)                   \
    HOPPER_SHARED_BYTES(HOPPER_QUERY_OPERANDS, HOPPER_BACKWARD_BARRIERS, 0, warpgroups, slots, \
                        stages, row_buffers, head_dim)
#define HOPPER_KEY_BYTES(warpgroups, slots, stages, row_buffers, head_dim)                   \
    HOPPER_SHARED_BYTES(HOPPER_KEY_OPERANDS, HOPPER_BACKWARD_BARRIERS, 1, warpgroups, slots, \
                        stages, row_buffers, head_dim)

#endif
