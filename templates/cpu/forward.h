/* SPDX-License-Identifier: Apache-2.0 */
/* One item of the forward pass: O and LSE of the rows that it owns, by the kernel that the plan names. Items that are
   all diagonals or one global row have kernels of their own; all others are row blocks:
     load Q rows, start the sums -> softmax_forward or sparsegen_forward -> epilogue, or the partial result. */
#ifndef MASKC_CPU_FORWARD_H
#define MASKC_CPU_FORWARD_H
#include "cpu/diagonal/forward.h"
#include "cpu/global_row/forward.h"
#include "cpu/matrix/global_row.h"
#include "cpu/softmax.h"
#include "cpu/sparsegen.h"
#include "cpu/write.h"

/* O / l and LSE to the caller's tensors. */
static void forward_epilogue(const struct row_block *t)
{
    const struct abi_args *a = t->s.a;
    const float kept = kept_scale(&t->s);
    float scale[BLOCK_ROWS], *lse = lse_at(&t->s, t->item->row0);
    for (u32 r = 0; r < BLOCK_ROWS; r++)
        scale[r] = t->m->total[r] * kept;
    row_block_write(t, &a->o, 0, scale);
    for (u32 r = 0; r < t->item->rows; r++, lse += t->item->step)
        if (row_owned(t->item, r) && row_of(t->item, r) < t->s.rows)
            *lse = row_live(t, r) ? t->m->offset[r] : -INFINITY_F;
}

static void row_block_forward(const struct sequence *s, const struct abi_item *item,
                              u8 *scratch)
{
    struct row_block t;
    struct prefetch x;
    row_block_open(&t, s, &s->a->forward, item, 0, &x, scratch);
    if (t.live) {
        row_block_take(&t, &s->a->q, t.row_scale, 0);
        row_block_prefetch(&t, &s->a->q, &s->a->o);
        merge_partial(&t, 0);
        if (IS_SOFTMAX)
            softmax_forward(&t);
        else
            sparsegen_forward(&t);
        row_block_zero_sums(&t, 0);
    }
    prefetch_rows(&x, x.rows);
    if (item->split)
        store_partial(&t, 1, t.m->row_max, t.m->total);
    else
        forward_epilogue(&t);
}

static void forward_item(const struct sequence *s, const struct abi_item *item, u8 *scratch)
{
    switch (kernel_of(item)) {
    case ABI_MATRIX_ROW_KERNEL:
        matrix_row_forward(s, item, scratch);
        return;
    case ABI_GLOBAL_ROW_KERNEL:
        global_row_forward(s, item, scratch);
        return;
    default:
        row_block_forward(s, item, scratch);
    }
}

/* Runs an item, or a run of items that are all diagonals. Returns the number of items. */
static u32 forward_items(const struct sequence *s, const struct abi_item *item, u32 neighbours,
                         u8 *scratch)
{
    const u32 together = diagonal_run_length(&s->a->forward, item, neighbours);
    if (together)
        diagonal_forward(s, item, together);
    else
        forward_item(s, item, scratch);
    return together ? together : 1;
}

#endif
