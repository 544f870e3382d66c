/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass of a global row: S, softmax over all columns at once, O = P V / l after dropout. Without a bias. */
#ifndef MASKC_CPU_GLOBAL_ROW_FORWARD_H
#define MASKC_CPU_GLOBAL_ROW_FORWARD_H
#include "cpu/diagonal/product.h"
#include "cpu/global_row/row.h"
#include "cpu/softmax_rows.h"

/* Scores to p = 2^(s - m). Returns l, and m in *m; l is 0 where no column is active. */
static float global_row_softmax(float *score, u32 count, float *m)
{
    *m = max_lanes(scores_max(score, count));
    return sum_lanes(row_exp2(score, count, *m == -INFINITY_F ? 0 : *m));
}

static void global_row_forward(const struct sequence *s, const struct abi_item *item,
                               u8 *scratch)
{
    struct row_range at = row_range_of(s, &s->a->forward, item);
    struct operand key = operand_of(s, OPERAND_KEY), value = operand_of(s, OPERAND_VALUE);
    struct block *b = global_row_block(scratch);
    float *score = b->score[0], buffer[WIDTH], m = 0, l = 0;
    u32 i = item->row0;
    if (i >= s->rows)
        return;
    if (i < s->length && at.count) {
        global_row_dots(score, row_floats(s, &s->a->q, i, buffer), &key, at,
                        s->a->scale * LOG2_E, -INFINITY_F);
        l = global_row_softmax(score, at.count, &m);
    }
    if (l <= 0.0f) { /* false for NaN, which must stay visible */
        row_clear(s, &s->a->o, i);
        *lse_at(s, i) = -INFINITY_F;
        return;
    }
    float *to = ROWS_PACKED ? buffer : (float *)s->a->o.data + element_at(s, &s->a->o, i);
    global_row_drop(score, at.count, global_row_keep(s, i, at, 0, b));
    global_row_sums(to, score, &value, at, kept_scale(s) / l);
    if (ROWS_PACKED)
        row_write(s, &s->a->o, i, 1, buffer);
    *lse_at(s, i) = m * LN_2 + natural_log(splat(l))[0];
}

#endif
