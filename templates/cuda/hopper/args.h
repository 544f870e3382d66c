/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the entries of cuda_hopper: the steps of the pass, tensor maps, and the arguments of every kernel. Read
   by the templates and by the runtime, which makes the maps of each launch. Include after abi.h. */
#ifndef MASKC_CUDA_HOPPER_ARGS_H
#define MASKC_CUDA_HOPPER_ARGS_H

/* A CUtensorMap: 2-byte elements, four dimensions (d, head, row, batch), boxes of 64 x 1 x rows x 1 elements, swizzle of
   128 bytes, zeros outside of the tensor. A box past the end counts its full bytes. */
struct __attribute__((aligned(64))) tensor_map {
    u8 opaque[128];
};

enum {
    HOPPER_ROWS = 64 /* of a row block, a warpgroup's */,
    HOPPER_PART = 64 /* positions of a head in a box */
};

/* An operand that streams: boxes of SLOTS * 32 rows, of 32 rows, of one row. */
struct stream_maps {
    struct tensor_map run, tile, row;
};

/* abi_args come last: they are longer where keys have a shape of their own. */
struct hopper_args {
    /*          forward   dQ         dK and dV
       rows     Q         Q, dO, O   K, V       boxes of 64 rows
       row      the same                        boxes of one row: where a row block crosses the end of a sequence
       columns  K, V      K, V       Q, dO
       out      O         dQ         dK, dV     boxes of 64 rows; without GROUPED */
    struct tensor_map rows[3], row[3], out[2];
    struct stream_maps columns[2];
    struct abi_steps steps;
    struct abi_args a;
};

#endif
