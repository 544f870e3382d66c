/* SPDX-License-Identifier: Apache-2.0 */
/* From groups to a block of scores, and from a block of weights to sums, whatever the lowering. */
#ifndef MASKC_CPU_SCORES_H
#define MASKC_CPU_SCORES_H

/* Whole vectors run over a row, so its last one is filled up. */
static void block_close(const struct row_block *t, struct block *b)
{
    block_bias(t, b);
    for (u32 r = 0; r < t->rows; r++)
        for (u32 c = b->cols; c % (MATRIX ? TILE : LANES); c++) {
            b->score[r][c] = -INFINITY_F;
            if (BACKWARD)
                b->slope[r][c] = 0;
            bias_close(b, r, c);
        }
}

static void group_keep(const struct row_block *t, struct block *b, const struct group *g)
{
    if (g->kind == GROUP_PANEL && t->item->step == 1)
        panel_keep(t, b, g);
    else if (group_is_panel(g))
        columns_keep(t, b, g);
    else
        for (u32 r = 0; r < t->rows; r++)
            walk_keep(t, b, g, r);
}

static void group_scores(const struct row_block *t, struct block *b, const struct group *g)
{
    if (group_is_panel(g))
        panel_scores(t, b, g);
    else
        walk_scores(t, b, g);
    group_bias(t, b, g);
}

static void block_scores(const struct row_block *t, struct block *b)
{
    if (dropping(t))
        keep_clear(t, b);
    for (u32 k = 0; k < b->groups; k++) {
        group_scores(t, b, &b->group[k]);
        if (dropping(t))
            group_keep(t, b, &b->group[k]);
    }
    block_close(t, b);
}

/* Sums that nothing is in yet: may a product of this group begin them? */
INLINE int group_begins(const struct row_block *t, const struct group *g)
{
    return MATRIX && (g->kind == GROUP_PANEL || g->kind == GROUP_COLUMNS) &&
           !(t->live_blocks & ~g->live);
}

/* sums[which] += weight x rows of the operand. */
static void block_sums(const struct row_block *t, const struct block *b,
                       const float (*weight)[SCORE_STRIDE], u32 operand, u32 which)
{
    float(*sums)[WIDTH] = t->m->sums[which];
    if (b->groups && !group_begins(t, b->group))
        row_block_begin_sums(t, which);
    for (u32 k = 0; k < b->groups;) {
        const struct group *g = &b->group[k];
        if (g->kind == GROUP_PANEL || (MATRIX && g->kind == GROUP_COLUMNS))
            k = panel_sums(t, b, k, weight, operand, which);
#if !MATRIX
        else if (g->kind == GROUP_COLUMNS)
            columns_sums(t, b, &b->group[k++], weight, operand, sums);
#endif
        else
            walk_sums(t, b, &b->group[k++], weight, operand, sums);
    }
}

#endif
