/* SPDX-License-Identifier: Apache-2.0 */
/* The plan header of the CUDA templates, written by hand for one case; see
   templates/cpu/plan_default.h. */
enum {
    HEAD_DIM = 64,
    STRIP_ROWS = 32,
    DTYPE = ABI_F32,
    TRANSFORM = ABI_SOFTMAX,
    DROPOUT = 1,
    SOFT = 0, /* enum abi_soft */
    BACKWARD = 1,
    THREADS = 128,        /* of a block */
    SHARED_BYTES = 26240, /* dynamic, of every entry: 3 tiles of 32 rows, and 32 sums */
    SCRATCH_FIXED_BYTES = 0,
    SCRATCH_COL_BYTES = 128,
};
