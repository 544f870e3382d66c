/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of training beside attention and the products (templates/train_ops). Their code is that of encoder_ops.h with
   `trains` set. */
#pragma once
#include "model/kernels/encoder_ops.h"
#include "templates/train_ops/args.h"

enum train_op {
    TRAIN_OP_EMBED,
    TRAIN_OP_NORM,
    TRAIN_OP_NORM_BACK,
    TRAIN_OP_COLUMNS,
    TRAIN_OP_ADD_PARTS,
    TRAIN_OP_ACTIVATE_BACK,
    TRAIN_OP_GLU_BACK,
    TRAIN_OP_SEGMENTS,
    TRAIN_OP_CROSS_ENTROPY,
    TRAIN_OP_LABELS,
    TRAIN_OP_LABELS_BACK,
    TRAIN_OP_REDUCE,
    TRAIN_OP_ADD,
    TRAIN_OP_PACK,
    TRAIN_OP_UPDATE,
    TRAIN_OPS
};
const char *train_op_entry(enum train_op op); /* its kernel's name */

/* Blocks that have something to do. */
uint64_t train_op_blocks(enum train_op op, const struct train_args *a);
