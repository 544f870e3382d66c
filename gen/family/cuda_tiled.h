/* SPDX-License-Identifier: Apache-2.0 */
/* Long sequences of the half dtypes on CUDA: a block works on a row block and columns stream past it. The
   shared memory that templates/cuda/tiled/forward.h and stream/backward.h lay out; they check
   these sizes at compile time. At most 99 KiB, which every target has. */
#pragma once
#include "gen/target.h"

uint32_t tiled_forward_bytes(const struct target *t, const struct kernel_config *c);
uint32_t tiled_backward_bytes(const struct target *t, const struct kernel_config *c);
/* Of the gradient of a bias. */
uint32_t tiled_bias_bytes(const struct target *t, const struct kernel_config *c);

/* Blocks that are to fit a processor at a time: it has 65536 registers, and a block 128 threads or 256. */
struct tiled_blocks {
    uint32_t forward, query, key, bias;
};
struct tiled_blocks tiled_blocks(const struct target *t, const struct kernel_config *c);

/* Whether row blocks may be tall: then a processor still holds as many warps, and a block fits it. */
bool tiled_takes_tall(const struct target *t, const struct kernel_request *r);

/* Whether the text has the row pass: where compiling takes long, which is above D = 112, only if the plan has
   rows alone. */
bool tiled_has_row_pass(const struct kernel_config *c);

/* Whether items are partial there, and what one leaves of a row (templates/cuda/tiled/partial.h). */
bool tiled_leaves_sums(const struct target *t, const struct kernel_config *c);
uint64_t tiled_partial_row(const struct target *t, const struct kernel_config *c);
