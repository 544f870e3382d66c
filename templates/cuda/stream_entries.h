/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the half dtypes for sequences that no block holds whole. Each block takes items
   of the work list. */
#ifndef MASKC_CUDA_STREAM_ENTRIES_H
#define MASKC_CUDA_STREAM_ENTRIES_H
#include "abi.h"
#include "plan.h"

#include "cuda/stream_rows.h"

/* Blocks that are to fit a processor at a time, by steps of the head: registers are 65536, and a
   block has 128 threads. */
enum {
    FORWARD_BLOCKS = STEPS <= 4 ? 4 : STEPS <= 6 ? 3 : 2,
    QUERY_BLOCKS = STEPS <= 2 ? 4 : STEPS <= 6 ? 3 : 2,
    KEY_BLOCKS = STEPS <= 2 ? 4 : STEPS <= 4 ? 3 : 2,
};

#if STREAM_FORWARD
ENTRY_OF(attention_forward, THREADS, FORWARD_BLOCKS)(ARGS a)
{
    NO_UNROLL
    for (u64 at = BLOCK; at < job_count(&a, &a.forward); at += BLOCKS) {
        struct job j = job_at(&a, &a.forward, at);
        if (j.single)
            row_forward(&a, &j);
        else if (TRANSFORM == ABI_SPARSEGEN)
            strip_sparsegen(&a, &j);
        else
            strip_forward(&a, &j);
    }
}
#endif

#if STREAM_BACKWARD
ENTRY_OF(attention_dq, THREADS, QUERY_BLOCKS)(ARGS a)
{
    NO_UNROLL
    for (u64 at = BLOCK; at < job_count(&a, &a.forward); at += BLOCKS) {
        struct job j = job_at(&a, &a.forward, at);
        if (j.single)
            row_query_gradient(&a, &j);
        else
            strip_query_gradient(&a, &j);
    }
}

ENTRY_OF(attention_dkv, THREADS, KEY_BLOCKS)(ARGS a)
{
    NO_UNROLL
    for (u64 at = BLOCK; at < job_count(&a, &a.transposed); at += BLOCKS) {
        struct job j = job_at(&a, &a.transposed, at);
        if (j.single)
            row_key_gradients(&a, &j);
        else
            strip_key_gradients(&a, &j);
    }
}
#endif

#endif
