/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_config.h of the SIMT family, written by hand for one case; see templates/cpu/kernel_config_default.h.
   Each family has one; tests/gen/emit_test.c compares them with what is emitted. To compile a template alone
   copy one to a folder as kernel_config.h and name the folder with -I. */
#ifndef MASKC_CUDA_SIMT_PLAN_DEFAULT_H
#define MASKC_CUDA_SIMT_PLAN_DEFAULT_H
#include "abi.h"
enum {
    HEAD_DIM = 64,
    BLOCK_ROWS = 32,
    DTYPE = ABI_F32,
    TRANSFORM = ABI_SOFTMAX,
    DROPOUT = 1,
    BIAS = 0, /* enum abi_bias */
    BACKWARD = 1,
    THREADS = 128,        /* of a block */
    SHARED_BYTES = 26240, /* dynamic, of every entry: 3 tiles of 32 rows, and 32 sums */
    SCRATCH_FIXED_BYTES = 0,
    SCRATCH_COL_BYTES = 0, /* sparsegen: a score for each row */
};
#endif
