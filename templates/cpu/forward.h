/* SPDX-License-Identifier: Apache-2.0 */
/* One item of the forward pass: O and LSE of the rows that it owns. */
#ifndef MASKC_CPU_FORWARD_H
#define MASKC_CPU_FORWARD_H

static void forward_write(const struct row_block *t)
{
    const struct abi_args *a = t->s.a;
    const float kept = dropping(t) ? a->keep_scale : 1;
    float factor[BLOCK_ROWS], *lse = lse_at(&t->s, t->item->row0);
    for (u32 r = 0; r < BLOCK_ROWS; r++)
        factor[r] = t->m->total[r] * kept;
    row_block_write(t, &a->o, 0, factor);
    for (u32 r = 0; r < t->item->rows; r++, lse += t->item->step)
        if (row_owned(t->item, r) && row_of(t->item, r) < t->s.rows)
            *lse = row_live(t, r) ? t->m->offset[r] : -INFINITY_F;
}

static void forward_item(const struct sequence *s, const struct abi_item *item, u8 *scratch)
{
    struct row_block t;
    struct expected x;
    const struct abi_plan *p = &s->a->forward;
    if (wide_alone(s, p, item)) {
        wide_forward(s, item, scratch);
        return;
    }
    if (plain_softmax(s) && row_alone(p, item)) {
        row_forward(s, item, scratch);
        return;
    }
    row_block_open(&t, s, &s->a->forward, item, 0, &x, scratch);
    if (t.live) {
        row_block_take(&t, &s->a->q, t.factor, 0);
        row_block_expect(&t, &s->a->q, &s->a->o);
        row_block_open_sums(&t, 0);
        if (IS_SOFTMAX)
            softmax_forward(&t);
        else
            sparsegen_forward(&t);
        row_block_begin_sums(&t, 0);
    }
    expect_rows(&x, x.rows);
    if (item->split)
        partial_leave(&t, 1, t.m->largest, t.m->total);
    else
        forward_write(&t);
}

/* An item, or as many of its neighbours as go together; how many. */
static u32 forward_items(const struct sequence *s, const struct abi_item *item, u32 neighbours,
                         u8 *scratch)
{
    const u32 lines = lines_together(s, &s->a->forward, item, neighbours);
    if (lines)
        lines_forward(s, item, lines);
    else
        forward_item(s, item, scratch);
    return lines ? lines : 1;
}

#endif
