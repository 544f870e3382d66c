/* SPDX-License-Identifier: Apache-2.0 */
/* dQ of the family of simt/forward.cu. */
#include "cuda/simt/backward.h"

ENTRY(attention_dq)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < job_count(&a, &a.forward); at += BLOCKS) {
        struct job j = job_at(&a, &a.forward, at);
        gradient_of_queries(&a, &j);
    }
}
