/* SPDX-License-Identifier: Apache-2.0 */
/* dK and dV of the half dtypes for sequences that no block holds whole; see stream/queries.cu. */
#include "cuda/tiled/keys.h"
#include "cuda/tiled/rows_backward.h"

ENTRY_OF(attention_dkv, THREADS, KEY_BLOCKS)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < job_count(&a, &a.transposed); at += BLOCKS) {
        struct job j = job_at(&a, &a.transposed, at);
        if (ROW_PASS && j.single)
            row_key_gradients(&a, &j);
        else
            row_block_key_gradients(&a, &j);
        at = j.index; /* the same; no register held it */
    }
}
