/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of the forward pass for short sequences. A block takes as many heads at a time as it
   has teams. */
#include "cuda/resident/forward.h"

ENTRY_OF(attention_short_forward, RESIDENT_FORWARD_THREADS, RESIDENT_FORWARD_BLOCKS)(ARGS a)
{
    const u32 total = a.slice_batch * a.heads, step = RESIDENT_FORWARD_HEADS;
    NO_UNROLL
    for (u32 at = BLOCK * step; at < total; at += BLOCKS * step) {
        struct resident_job j =
            resident_job_at(&a, at, step, RESIDENT_FORWARD_WARPS, 2 * RESIDENT_OPERAND);
        resident_forward(&a, &j);
    }
}
