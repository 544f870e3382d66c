/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of the forward pass for short sequences. A block takes as many heads at a time as it
   has teams. */
#include "cuda/short/forward.h"

ENTRY_OF(attention_short_forward, SHORT_FORWARD_THREADS, SHORT_FORWARD_BLOCKS)(ARGS a)
{
    const u32 total = a.slice_batch * a.heads, step = SHORT_FORWARD_HEADS;
    NO_UNROLL
    for (u32 at = BLOCK * step; at < total; at += BLOCKS * step) {
        struct short_job j = short_job_at(&a, at, step, SHORT_FORWARD_WARPS, 2 * SHORT_OPERAND);
        short_forward(&a, &j);
    }
}
