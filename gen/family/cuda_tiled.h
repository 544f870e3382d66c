/* SPDX-License-Identifier: Apache-2.0 */
/* The tiled kernels of CUDA. templates/cuda/tiled/forward.h and backward.h check the sizes of their shared memory at
   compile time. At most 99 KiB, which every target has. */
#pragma once
#include "gen/family/family.h"

/* Blocks that are to fit a processor at a time: it has 65536 registers, and a block 128 threads or 256. */
struct tiled_blocks {
    uint32_t forward, query, key, bias;
};
struct tiled_blocks tiled_blocks(const struct target *t, const struct kernel_config *c);

/* True if the text has the global-row pass. Above D = 112, where compiling is slow, only if the plan has global
   rows. */
bool tiled_has_row_pass(const struct kernel_config *c);
