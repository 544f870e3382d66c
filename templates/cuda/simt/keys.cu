/* SPDX-License-Identifier: Apache-2.0 */
/* dK and dV of the family of simt/forward.cu. */
#include "cuda/simt/backward.h"

ENTRY(attention_dkv)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < job_count(&a, &a.transposed); at += BLOCKS) {
        struct job j = job_at(&a, &a.transposed, at);
        gradient_of_keys(&a, &j);
    }
}
