/* SPDX-License-Identifier: Apache-2.0 */
#include "model/kernels/train_ops.h"

/* How the work of an entry is divided among blocks. */
enum division {
    BY_ROW_OF_WARP,
    BY_ROW,
    BY_ELEMENT,
    BY_COLUMN,
    BY_CHUNK,
    BY_TILE,
    BY_COUNT,
    BY_PART
};

static const struct {
    const char *entry;
    enum division division;
} ops[TRAIN_OPS] = {
    [TRAIN_OP_EMBED] = {"train_embed", BY_ROW_OF_WARP},
    [TRAIN_OP_NORM] = {"train_norm", BY_ROW_OF_WARP},
    [TRAIN_OP_NORM_BACK] = {"train_norm_back", BY_ROW_OF_WARP},
    [TRAIN_OP_COLUMNS] = {"train_columns", BY_CHUNK},
    [TRAIN_OP_ADD_PARTS] = {"train_add_parts", BY_COLUMN},
    [TRAIN_OP_ACTIVATE_BACK] = {"train_activate_back", BY_ELEMENT},
    [TRAIN_OP_GLU_BACK] = {"train_glu_back", BY_ELEMENT},
    [TRAIN_OP_SEGMENTS] = {"train_segments", BY_ROW_OF_WARP},
    [TRAIN_OP_CROSS_ENTROPY] = {"train_cross_entropy", BY_ROW},
    [TRAIN_OP_LABELS] = {"train_labels", BY_ROW_OF_WARP},
    [TRAIN_OP_LABELS_BACK] = {"train_labels_back", BY_ROW_OF_WARP},
    [TRAIN_OP_REDUCE] = {"train_reduce", BY_PART},
    [TRAIN_OP_ADD] = {"train_add", BY_COUNT},
    [TRAIN_OP_PACK] = {"train_pack", BY_TILE},
    [TRAIN_OP_UPDATE] = {"train_update", BY_ROW},
};

const char *train_op_entry(enum train_op op)
{
    return ops[op].entry;
}

static uint64_t divided(uint64_t all, uint64_t each)
{
    return (all + each - 1) / each;
}

uint64_t train_op_blocks(enum train_op op, const struct train_args *a)
{
    switch (ops[op].division) {
    case BY_ROW_OF_WARP:
        return divided(a->rows, TRAIN_ROWS_OF_BLOCK);
    case BY_ROW:
        return a->rows;
    case BY_ELEMENT:
        return divided((uint64_t)a->rows * a->columns, TRAIN_THREADS);
    case BY_COLUMN:
        return divided(a->columns, TRAIN_THREADS);
    case BY_CHUNK:
        return divided(a->rows, TRAIN_CHUNK) * divided(a->columns, TRAIN_THREADS);
    case BY_TILE:
        return a->count;
    case BY_COUNT:
        return divided(a->count, TRAIN_THREADS);
    case BY_PART:
        return divided(a->count, TRAIN_PART);
    }
    return 0;
}
