/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_config.h of cuda_hopper for one case: bf16, D = 64, wide kernels. See simt/kernel_config_default.h. */
#ifndef MASKC_CUDA_HOPPER_PLAN_DEFAULT_H
#define MASKC_CUDA_HOPPER_PLAN_DEFAULT_H
#include "abi.h"
enum {
    FORWARD_WARPGROUPS = 3,  /* of 64 rows each */
    FORWARD_SLOTS = 4,       /* of 32 columns: a step */
    FORWARD_STAGES = 4,      /* steps in shared memory */
    FORWARD_ROW_BUFFERS = 2, /* groups of row blocks in shared memory */
    FORWARD_BLOCKS = 1,      /* that fit a multiprocessor */
    FORWARD_REGISTERS = 160, /* of a thread that computes; 0: as the compiler divides them */
    FORWARD_COPY_REGISTERS = 32,
    FORWARD_ROWS_HELD = 0, /* row operands that stay in registers */
    FORWARD_IN_TURN = 1,   /* 1: warpgroups take turns where a group allows it */
    FORWARD_THREADS = 512,
    QUERY_WARPGROUPS = 2,
    QUERY_SLOTS = 4,
    QUERY_STAGES = 3,
    QUERY_ROW_BUFFERS = 2,
    QUERY_BLOCKS = 1,
    QUERY_REGISTERS = 232,
    QUERY_COPY_REGISTERS = 40,
    QUERY_ROWS_HELD = 0,
    QUERY_IN_TURN = 0,
    QUERY_WAIT_SUMS = 0, /* 1: a step's sums end before the next step's products begin */
    QUERY_THREADS = 384,
    KEY_WARPGROUPS = 2,
    KEY_SLOTS = 4,
    KEY_STAGES = 3,
    KEY_ROW_BUFFERS = 2,
    KEY_BLOCKS = 1,
    KEY_REGISTERS = 240,
    KEY_COPY_REGISTERS = 24,
    KEY_ROWS_HELD = 0,
    KEY_IN_TURN = 0,
    KEY_WAIT_SUMS = 1,
    KEY_THREADS = 384,
    MERGE_THREADS = 128, /* a position of the head each */
    CUT_ROWS = 0,        /* 1: global rows are cut into parts, which a later phase merges */
    BACKWARD = 1,
    THREADS = 128,        /* of attention_key_heads */
    SHARED_BYTES = 26240, /* only cuda_simt reads it */
    BIAS = 0,
    HEAD_DIM = 64,
    BLOCK_ROWS = 64,
    DTYPE = ABI_BF16,
    TRANSFORM = ABI_SOFTMAX,
    DROPOUT = 0,
    SCRATCH_FIXED_BYTES = 0,
    SCRATCH_COL_BYTES = 0,
};
#endif
