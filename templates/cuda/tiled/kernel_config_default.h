/* SPDX-License-Identifier: Apache-2.0 */
/* The plan header of the streaming family (stream/forward.cu, stream/queries.cu, stream/keys.cu) for one case: bf16,
   sequences of any length. See simt/kernel_config_default.h. */
#ifndef MASKC_CUDA_TILED_PLAN_DEFAULT_H
#define MASKC_CUDA_TILED_PLAN_DEFAULT_H
enum {
    FORWARD_SHARED = 27648,  /* of a block: 192 rows of 2 (64 + 8) bytes */
    BACKWARD_SHARED = 36864, /* 256 of them */
    BIAS_SHARED = 36864,     /* the same, for the gradient of a bias */
    FORWARD_BLOCKS = 3,      /* that are to fit a processor, of each entry */
    QUERY_BLOCKS = 3,
    KEY_BLOCKS = 2,
    BIAS_BLOCKS = 3,
    SHARED_ROWS = 0, /* 1: items leave parts of their rows to others */
    ROW_PASS = 1,    /* 1: an item of one row takes the row pass, */
    CUT_ROWS = 0,    /* 1: which is cut along its columns */
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
