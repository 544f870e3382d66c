/* SPDX-License-Identifier: Apache-2.0 */
/* Short sequences on CUDA: a head's operands fit a block's shared memory whole. Which problems the
   short kernels take and the shape that they then have; all others are for the streaming kernels. */
#pragma once
#include "gen/target.h"

struct resident_shape {
    uint32_t rows;         /* of a head in shared memory: rounded up to 16, or to 2 */
    uint32_t warps, heads; /* warps of a head, heads of a block */
    uint32_t row_blocks;   /* of 16 rows that a warp works on together */
    uint32_t shared_bytes; /* of a block */
    uint32_t blocks;       /* that are to fit a processor at a time, for the compiler */
};

/* Whether a pass is for the short kernels: a half dtype on CUDA and a known length that fits the
   target. Backward only where forward. `ret` may be null; where false it is not filled. */
bool resident_forward(const struct target *t, const struct kernel_request *r,
                      struct resident_shape *ret);
bool resident_backward(const struct target *t, const struct kernel_request *r,
                       struct resident_shape *ret);
