/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_config.h of the tiled family for one case: bf16, sequences of any length. See
   simt/kernel_config_default.h. */
#ifndef MASKC_CUDA_TILED_PLAN_DEFAULT_H
#define MASKC_CUDA_TILED_PLAN_DEFAULT_H
#include "abi.h"
enum {
    FORWARD_SHARED = 25312,  /* of a block: 192 rows of 2 x 64 bytes, and notes */
    BACKWARD_SHARED = 36064, /* 256 of them */
    BIAS_SHARED = 36064,     /* the same, for the gradient of a bias */
    FORWARD_BLOCKS = 3,      /* that are to fit a multiprocessor, of each entry */
    QUERY_BLOCKS = 3,
    KEY_BLOCKS = 2,
    BIAS_BLOCKS = 3,
    OUTPUTS_UNROLLED = 4, /* steps of the loop over rows of O, before the first column tile */
    SHARED_ROWS = 0,      /* 1: items share rows and merge partial results */
    ROW_PASS = 1,         /* 1: an item of one row is a global row, for the whole block */
    CUT_ROWS = 0,         /* 1: global rows are split along their columns */
    BACKWARD = 1,
    THREADS = 128, /* of a block: 16 rows a warp */
    SHARED_BYTES = 26240,
    BIAS = 0,
    HEAD_DIM = 64,
    BLOCK_ROWS = 64,
    DTYPE = ABI_BF16,
    TRANSFORM = ABI_SOFTMAX,
    DROPOUT = 1,
    SCRATCH_FIXED_BYTES = 0,
    SCRATCH_COL_BYTES = 0,
};
#endif
