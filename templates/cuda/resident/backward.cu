/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of the backward pass for short sequences; see short/forward.cu. */
#include "cuda/resident/backward.h"

ENTRY_OF(attention_short_backward, RESIDENT_BACKWARD_THREADS, RESIDENT_BACKWARD_BLOCKS)(ARGS a)
{
    const u32 total = a.slice_batch * a.heads, step = RESIDENT_BACKWARD_HEADS;
    NO_UNROLL
    for (u32 at = BLOCK * step; at < total; at += BLOCKS * step) {
        struct resident_job j =
            resident_job_at(&a, at, step, RESIDENT_BACKWARD_WARPS, RESIDENT_HEAD);
        resident_backward(&a, &j);
    }
}
