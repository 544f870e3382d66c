/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_config.h of the resident family for one case: bf16, up to 128 positions, on sm_80. See
   simt/kernel_config_default.h. */
#ifndef MASKC_CUDA_RESIDENT_PLAN_DEFAULT_H
#define MASKC_CUDA_RESIDENT_PLAN_DEFAULT_H
#include "abi.h"
enum {
    RESIDENT_ROWS = 128,             /* of a head in shared memory */
    RESIDENT_FORWARD_ROW_BLOCKS = 1, /* warp tiles of 16 rows that a warp takes together */
    RESIDENT_FORWARD_WARPS = 4,      /* of a head */
    RESIDENT_FORWARD_HEADS = 1,      /* of a block */
    RESIDENT_FORWARD_THREADS = 128,
    RESIDENT_FORWARD_BLOCKS = 3,     /* that are to fit a multiprocessor */
    RESIDENT_FORWARD_SHARED = 49152, /* V, K and Q */
    RESIDENT_Q_COPIED = 1,           /* 0: V and K only */
    RESIDENT_BACKWARD_ROW_BLOCKS = 1,
    RESIDENT_BACKWARD_WARPS = 8,
    RESIDENT_BACKWARD_HEADS = 1,
    RESIDENT_BACKWARD_THREADS = 256,
    RESIDENT_BACKWARD_BLOCKS = 1,
    RESIDENT_BACKWARD_SHARED = 98368, /* Q, K, V, dO, p_smem, 16 words */
};
enum {
    BACKWARD = 1,
    THREADS = 128,
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
