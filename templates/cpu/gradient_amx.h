/* SPDX-License-Identifier: Apache-2.0 */
/* P and dS of a block that is all panels and gathered columns, for a matrix unit: from scores and
   slopes straight to rounded weights, without the floats that walks and dropout need. */
#ifndef MASKC_CPU_GRADIENT_AMX_H
#define MASKC_CPU_GRADIENT_AMX_H

INLINE int panels_alone(const struct strip *t, const struct block *b)
{
    return !SOFT && !b->walks && !dropping(t);
}

/* LSE and state of a group of gathered columns. */
static void gathered_read(const struct strip *t, const struct group *g, float *offset,
                          float *mean)
{
    for (u32 c = 0; c < TILE; c++) {
        u32 column = group_column(t, g, c < g->width ? c : 0);
        offset[g->at + c] = c < g->width ? score_offset(*lse_at(&t->s, column)) : 0;
        mean[g->at + c] = c < g->width ? *state_at(&t->s, column) : 0;
    }
}

/* The transposed plan: what is subtracted from the columns' scores and slopes. */
static void columns_read(const struct strip *t, const struct block *b, float *offset,
                         float *mean)
{
    const vec none = splat(-INFINITY_F);
    for (u32 k = 0; k < b->groups; k++) {
        const struct group *g = &b->group[k];
        if (g->kind == GROUP_COLUMNS) {
            gathered_read(t, g, offset, mean);
            continue;
        }
        const float *lse = lse_at(&t->s, g->first), *state = state_at(&t->s, g->first);
        for (u32 c = 0; c < TILE; c += LANES) {
            vec x = {0}, y = {0};
            if (c + LANES <= g->width) {
                x = load(lse + c);
                y = load(state + c);
            }
            for (u32 i = 0; c + LANES > g->width && i < LANES && c + i < g->width; i++) {
                x[i] = lse[c + i];
                y[i] = state[c + i];
            }
            store(offset + g->at + c, pick_or_zero(~(ivec)(x == none), x * LOG2_E));
            store(mean + g->at + c, y);
        }
    }
}

/* Of row r; returns the sum of dS, lane by lane. `columns`: offset and mean are the columns', else
   the row's own. */
INLINE vec row_gradient(struct block *b, u32 r, float gain, const float *offset,
                        const float *mean, int columns)
{
    const float *score = b->score[r], *slope = b->slope[r];
    vec sum = {0}, p[2], ds[2];
    for (u32 c = 0; c < b->cols; c += 2 * LANES) {
        for (u32 k = 0; k < 2; k++) {
            u32 at = c + k * LANES, from = columns ? at : 0;
            p[k] = exp2_half(load(score + at) * gain -
                             (columns ? load(offset + from) : splat(*offset)));
            ds[k] = p[k] * (load(slope + at) - (columns ? load(mean + from) : splat(*mean)));
        }
        half_store2(&b->weight[0][r][c], p[0], p[1]);
        half_store2(&b->weight[1][r][c], ds[0], ds[1]);
        sum += ds[0] + ds[1];
    }
    return sum;
}

/* missing[r] += the sum of row r's dS. */
static void panels_gradient(const struct strip *t, struct block *b, float *missing)
{
    float offset[CHUNK_COLS + TILE], mean[CHUNK_COLS + TILE];
    if (t->transposed) {
        columns_read(t, b, offset, mean);
        for (u32 r = 0; r < t->rows; r++)
            row_gradient(b, r, t->gain, offset, mean, 1);
        return;
    }
    for (u32 r = 0; r < t->rows; r++)
        missing[r] +=
            sum_lanes(row_gradient(b, r, t->gain, &t->m->offset[r], &t->m->mean[r], 0));
}

#endif
