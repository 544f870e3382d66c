/* SPDX-License-Identifier: Apache-2.0 */
/* Encoder ops (embeddings, LayerNorm, the work around matrix products): machine code for a GPU, or text for the
   emulation. */
#pragma once
#include "masks/base/error.h"
#include "runtime/maskc.h"
#include "templates/abi.h"
#include "templates/encoder_ops/args.h"
#include <stdbool.h>

enum encoder_op {
    ENCODER_OP_EMBED,
    ENCODER_OP_NORM,
    ENCODER_OP_ADD,
    ENCODER_OP_FINISH,
    ENCODER_OP_GATHER,
    ENCODER_OP_MEAN,
    ENCODER_OP_GLU,
    ENCODER_OP_ROTATE,
    ENCODER_OPS
};
extern const char *const encoder_op_entries[ENCODER_OPS]; /* their kernels' names */

struct encoder_ops_shape {
    enum maskc_dtype dtype; /* MASKC_F32 or MASKC_BF16 */
    uint32_t hidden;        /* length of a row, 1 or more */
    bool trains;            /* the kernels of training, train_ops.h */
};
/* Machine code for that GPU, compiled or from maskc's cache; a zero follows, as it may be text. The caller
   frees it. Null with *e set. */
uint8_t *encoder_ops_image(const struct encoder_ops_shape *s, int ordinal, struct error *e);
/* Their CUDA text in one piece, as emulated_open takes it. The caller frees it. */
char *encoder_ops_text(const struct encoder_ops_shape *s);
