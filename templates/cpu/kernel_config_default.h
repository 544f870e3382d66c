/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/* A kernel config of the CPU templates, written by hand for one case: an example of what the emitter writes, and what
   the templates are checked with. Numbers are enums, except those that the preprocessor tests. templates/README.md
   says what each means. */
#ifndef VECTOR_BYTES
#define VECTOR_BYTES 32 /* 16 (SSE), 32 (AVX2), 64 (AVX-512) */
#endif
#define BACKWARD 1      /* 0: the backward entry points are left out */
#define BIAS 1          /* enum abi_bias; absent: 0 */
enum {
    HEAD_DIM = 64,
    BLOCK_ROWS = 32,
    DTYPE = ABI_F32,
    TRANSFORM = ABI_SOFTMAX,
    DROPOUT = 1,      /* the code can drop; abi_args.keep_below says whether it does */
    GATHERED = 4,     /* matrix units: tiles of gathered columns that a thread keeps */
    CHUNK_COLS = 512, /* score columns of a block */
    PACK_ROW_BYTES = 2560,        /* pack space for each row of a head (padded to 32, plus 32) */
    SCRATCH_FIXED_BYTES = 351168, /* scratch of a thread ... */
    SCRATCH_COL_BYTES = 0,        /* ... and for each score column of the widest item */
};
