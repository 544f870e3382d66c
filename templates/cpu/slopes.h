/* SPDX-License-Identifier: Apache-2.0 */
/* A block's slopes dP = dO V^T beside its scores, whatever the lowering; over the transposed plan with
   what is subtracted from them, which belongs to columns there. */
#ifndef MASKC_CPU_SLOPES_H
#define MASKC_CPU_SLOPES_H

#if MATRIX
#include "cpu/matrix/gradient.h"
#else
INLINE void panels_gradient(const struct row_block *t, struct block *b, float *missing)
{
    (void)t, (void)b, (void)missing;
}
#endif

static void panel_slopes(const struct row_block *t, struct block *b, const struct group *g)
{
    float *to = &b->slope[0][g->at];
    panel_product(t, g, 1, to);
    panel_fill(to, blocks_idle(t, g), 0);
}

static void walk_slopes(const struct row_block *t, struct block *b, const struct group *g)
{
    for (u32 r = 0; r < t->rows; r++) {
        const u32 *column = &b->column[r][g->at];
        u32 count = walk_count(column, g->width);
        walk_dots(t->m->row[1][r], &t->operand[1], column, count, &b->slope[r][g->at]);
        for (u32 k = count; k < g->width; k++)
            b->slope[r][g->at + k] = 0;
    }
}

static void group_drop_slopes(const struct row_block *t, struct block *b, const struct group *g)
{
    float kept = t->s.a->keep_scale;
    for (u32 r = 0; r < t->rows; r++)
        for (u32 c = g->at; c < g->at + g->width; c++)
            b->slope[r][c] *= b->keep[r][c / 32] >> (c % 32) & 1 ? kept : 0;
}

/* The transposed plan: offsets and means of the columns, from every row. */
static void panel_subtract(const struct row_block *t, struct block *b, const struct group *g)
{
    const float gain = MATRIX ? t->gain : 1;
    float offset[TILE], mean[TILE];
    for (u32 c = 0; c < TILE; c++) {
        u32 column = group_column(t, g, c < g->width ? c : 0);
        offset[c] = c < g->width ? score_offset(*lse_at(&t->s, column)) : 0;
        mean[c] = c < g->width ? *state_at(&t->s, column) : 0;
    }
    for (u32 r = 0; r < t->rows; r++)
        for (u32 c = 0; c < TILE; c += LANES) {
            float *score = &b->score[r][g->at + c], *slope = &b->slope[r][g->at + c];
            store(score, load(score) * gain - load(offset + c));
            store(slope, load(slope) - load(mean + c));
        }
}

static void walk_subtract(const struct row_block *t, struct block *b, const struct group *g)
{
    for (u32 r = 0; r < t->rows; r++) {
        const u32 *column = &b->column[r][g->at];
        u32 count = walk_count(column, g->width);
        for (u32 k = 0; k < count; k++) {
            float *score = &b->score[r][g->at + k];
            *score = *score * (MATRIX ? t->gain : 1) - score_offset(*lse_at(&t->s, column[k]));
            b->slope[r][g->at + k] -= *state_at(&t->s, column[k]);
        }
    }
}

static void block_slopes(const struct row_block *t, struct block *b)
{
    if (dropping(t))
        keep_clear(t, b);
    for (u32 k = 0; k < b->groups; k++) {
        const struct group *g = &b->group[k];
        group_scores(t, b, g);
        if (group_is_panel(g))
            panel_slopes(t, b, g);
        else
            walk_slopes(t, b, g);
        if (dropping(t)) {
            group_keep(t, b, g);
            group_drop_slopes(t, b, g);
        }
        if (!t->transposed)
            continue;
        group_scale_slopes(t, b, g);
        if (group_is_panel(g))
            panel_subtract(t, b, g);
        else
            walk_subtract(t, b, g);
    }
    block_close(t, b);
}

#endif
