/* SPDX-License-Identifier: Apache-2.0 */
/* Tiled family, forward: softmax (forward.h), sparsegen (sparsegen.h), global rows (global_row_forward.h). Each
   block takes items of the work list in turn. */
#include "cuda/tiled/global_row_forward.h"

ENTRY_OF(attention_forward, THREADS, FORWARD_BLOCKS)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < work_item_count(&a, &a.forward); at += BLOCKS) {
        struct work_item work = work_item_at(&a, &a.forward, at);
        if (ROW_PASS && work.global_row)
            global_row_forward(&a, &work);
        else if (TRANSFORM == ABI_SPARSEGEN)
            row_block_sparsegen(&a, &work);
        else
            row_block_forward(&a, &work);
        at = work.index; /* read back from shared memory: no register held it */
    }
}
