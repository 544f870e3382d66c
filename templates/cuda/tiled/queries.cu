/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass of the half dtypes for sequences that no block holds whole: dQ, which leaves the state
   that dK and dV read (stream/keys.cu). */
#include "cuda/tiled/queries.h"
#include "cuda/tiled/rows_backward.h"

ENTRY_OF(attention_dq, THREADS, QUERY_BLOCKS)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < job_count(&a, &a.forward); at += BLOCKS) {
        struct job j = job_at(&a, &a.forward, at);
        if (ROW_PASS && j.single)
            row_query_gradient(&a, &j);
        else
            row_block_query_gradient(&a, &j);
        at = j.index; /* the same; no register held it */
    }
}
