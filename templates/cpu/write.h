/* SPDX-License-Identifier: Apache-2.0 */
/* Output of a row block's rows, forward and backward. */
#ifndef MASKC_CPU_WRITE_H
#define MASKC_CPU_WRITE_H
#include "cpu/row_block.h"

/* bf16 rows of whole vectors: what all rows share is computed once. */
enum { WRITES_WHOLE = MATRIX && !IS_F32 && !IS_F16 && HEAD_DIM % (2 * LANES) == 0 };

#if MATRIX
static void row_block_write_whole(const struct row_block *t, const struct abi_tensor *to,
                                  u32 which, const float *scale)
{
    const int streamed = rows_streamed(&t->s, to);
    const float *from = t->m->sums[which][0];
    u16 *at = (u16 *)to->data + element_at(&t->s, to, t->item->row0);
    for (u32 r = 0; r < BLOCK_ROWS; r++, from += WIDTH) {
        const vec f = splat(scale[r]);
        for (u32 d = 0; d < HEAD_DIM; d += 2 * LANES)
            half_put2(at + d, load(from + d) * f, load(from + d + LANES) * f, streamed);
        at += (i64)t->item->step * to->row;
    }
}
#else
INLINE void row_block_write_whole(const struct row_block *t, const struct abi_tensor *to,
                                  u32 which, const float *scale)
{
    (void)t, (void)to, (void)which, (void)scale;
}
#endif

/* Sums times each row's scale to the rows that the item owns; zeros beyond the length. */
static void row_block_write(const struct row_block *t, const struct abi_tensor *to, u32 which,
                            const float *scale)
{
    if (WRITES_WHOLE && t->live == 0xffffffff && !holds_floats(&t->s, to)) {
        row_block_write_whole(t, to, which, scale);
        return;
    }
    for (u32 r = 0; r < t->item->rows; r++) {
        u32 i = row_of(t->item, r);
        if (!row_owned(t->item, r) || i >= t->s.rows)
            continue;
        if (row_live(t, r))
            row_write(&t->s, to, i, scale[r], t->m->sums[which][r]);
        else
            row_clear(&t->s, to, i);
    }
}

#endif
