/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of the backward pass for short sequences; see short/forward.cu. */
#include "cuda/short/backward.h"

ENTRY_OF(attention_short_backward, SHORT_BACKWARD_THREADS, SHORT_BACKWARD_BLOCKS)(ARGS a)
{
    const u32 total = a.slice_batch * a.heads, step = SHORT_BACKWARD_HEADS;
    NO_UNROLL
    for (u32 at = BLOCK * step; at < total; at += BLOCKS * step) {
        struct short_job j = short_job_at(&a, at, step, SHORT_BACKWARD_WARPS, SHORT_HEAD);
        short_backward(&a, &j);
    }
}
