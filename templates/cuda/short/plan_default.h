/* SPDX-License-Identifier: Apache-2.0 */
/* The plan header of short sequences (short/forward.cu, short/backward.cu) for one case: bf16, up to 128
   positions, on sm_80. See simt/plan_default.h. */
#ifndef MASKC_CUDA_SHORT_PLAN_DEFAULT_H
#define MASKC_CUDA_SHORT_PLAN_DEFAULT_H
enum {
    SHORT_ROWS = 128,         /* of a head in shared memory */
    SHORT_FORWARD_STRIPS = 1, /* of 16 rows that a warp works on together */
    SHORT_FORWARD_WARPS = 4,  /* of a head */
    SHORT_FORWARD_HEADS = 1,  /* of a block */
    SHORT_FORWARD_THREADS = 128,
    SHORT_FORWARD_BLOCKS = 3,     /* that are to fit a processor */
    SHORT_FORWARD_SHARED = 32768, /* K and V */
    SHORT_BACKWARD_STRIPS = 1,
    SHORT_BACKWARD_WARPS = 8,
    SHORT_BACKWARD_HEADS = 1,
    SHORT_BACKWARD_THREADS = 256,
    SHORT_BACKWARD_BLOCKS = 1,
    SHORT_BACKWARD_SHARED = 98368, /* Q, K, V, dO, a square of halves, 16 words */
};
/* where a pass is too long for that, it streams */
enum {
    FORWARD_SHARED = 27648,
    BACKWARD_SHARED = 36864,
    SOFT_SHARED = 36864,
    FORWARD_BLOCKS = 3,
    QUERY_BLOCKS = 3,
    KEY_BLOCKS = 2,
    SOFT_BLOCKS = 3,
    SHARED_ROWS = 0,
    ROW_PASS = 1,
    CUT_ROWS = 0,
};
enum {
    BACKWARD = 1,
    THREADS = 128,
    SHARED_BYTES = 26240,
    SOFT = 0,
    HEAD_DIM = 64,
    STRIP_ROWS = 64,
    DTYPE = ABI_BF16,
    TRANSFORM = ABI_SOFTMAX,
    DROPOUT = 1,
    SCRATCH_FIXED_BYTES = 0,
    SCRATCH_COL_BYTES = 0,
};
#endif
