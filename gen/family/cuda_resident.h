/* SPDX-License-Identifier: Apache-2.0 */
/* Short sequences on CUDA: the operands of a head fit a block's shared memory. Which problems the resident kernels
   take, and their shape; the tiled kernels take all others. */
#pragma once
#include "gen/target.h"

struct resident_shape {
    uint32_t rows;         /* of a head in shared memory: rounded up to 16, or to 2 */
    uint32_t warps, heads; /* warps of a head, heads of a block */
    uint32_t row_blocks;   /* of 16 rows that a warp works on together */
    bool q_copied;         /* forward: Q lies in shared memory beside K and V */
    uint32_t shared_bytes; /* of a block */
    uint32_t blocks;       /* thread blocks that fit a processor at a time */
};

/* True if the resident kernels do a pass: a half dtype on CUDA and a known length that fits the target. They do
   backward only with forward. `ret` may be null; it is filled only if the result is true. */
bool resident_forward(const struct target *t, const struct kernel_request *r,
                      struct resident_shape *ret);
bool resident_backward(const struct target *t, const struct kernel_request *r,
                       struct resident_shape *ret);
