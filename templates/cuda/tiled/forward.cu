/* SPDX-License-Identifier: Apache-2.0 */
/* Tiled family, forward: softmax (forward.h), sparsegen (sparsegen.h), global rows (global_row_forward.h). Each
   block takes items of the work list in turn. */
#include "cuda/tiled/global_row_forward.h"

ENTRY_OF(attention_forward, THREADS, FORWARD_BLOCKS)(ARGS a)
{
    const u32 first = first_work(&a, &a.forward);
    if (first >= works_end(&a, &a.forward))
        return;
    struct ahead ahead = ahead_start(&a, &a.forward, first);
    NO_UNROLL
    for (u32 at = first; at < works_end(&a, &a.forward); at = ahead.at) {
        struct work_item work = work_item_at(&a, &a.forward, at, &ahead);
        if (ROW_PASS && work.global_row) {
            global_row_forward(&a, &work);
            ahead_next(&ahead, &work);
        } else if (TRANSFORM == ABI_SPARSEGEN) {
            row_block_sparsegen(&a, &work, &ahead);
            ahead_next(&ahead, &work);
        } else {
            row_block_forward(&a, &work, &ahead);
        }
    }
}
