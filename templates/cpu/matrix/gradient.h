/* SPDX-License-Identifier: Apache-2.0 */
/* P and dS of a block that is all panels and gathered columns, for a matrix unit: group by group from
   its stores to rounded weights, without the floats that walks and dropout need. */
#ifndef MASKC_CPU_MATRIX_GRADIENT_H
#define MASKC_CPU_MATRIX_GRADIENT_H

/* What is subtracted from scores and slopes: by the transposed plan the columns' own. */
struct subtrahends {
    float offset[TILE], mean[TILE];
};

static void gathered_read(const struct row_block *t, const struct group *g,
                          struct subtrahends *ret)
{
    for (u32 c = 0; c < TILE; c++) {
        u32 column = group_column(t, g, c < g->width ? c : 0);
        ret->offset[c] = c < g->width ? score_offset(*lse_at(&t->s, column)) : 0;
        ret->mean[c] = c < g->width ? *state_at(&t->s, column) : 0;
    }
}

static void columns_read(const struct row_block *t, const struct group *g,
                         struct subtrahends *ret)
{
    if (g->kind == GROUP_COLUMNS || g->width < TILE) {
        gathered_read(t, g, ret);
        return;
    }
    const float *lse = lse_at(&t->s, g->first), *state = state_at(&t->s, g->first);
    for (u32 c = 0; c < TILE; c += LANES) {
        vec x = load(lse + c);
        store(ret->offset + c, pick_or_zero(~(ivec)(x == splat(-INFINITY_F)), x * LOG2_E));
        store(ret->mean + c, load(state + c));
    }
}

/* Two vectors of row r to P and dS, 0 where the column's bit is not set (null: all are); returns the sum
   of dS, lane by lane. */
INLINE vec pair_gradient(const float *score, const float *slope, u16 *p, u16 *ds, vec gain,
                         const vec offset[2], const vec mean[2], const u32 *bits)
{
    vec x[2], y[2];
    for (u32 k = 0; k < 2; k++) {
        vec s = load(score + k * LANES) * gain - offset[k];
        x[k] = bits ? exp2_seen(s, *bits >> (k * LANES)) : exp2_half(s);
        y[k] = x[k] * (load(slope + k * LANES) - mean[k]);
    }
    half_store2(p, x[0], x[1]);
    half_store2(ds, y[0], y[1]);
    return y[0] + y[1];
}

/* Scores and slopes of a group, in row block `k`. */
INLINE void gradient_weigh(const struct row_block *t, struct block *b, const struct group *g,
                           const float *score, const float *slope, const u32 *word, u32 k,
                           const struct subtrahends *column, u32 expect, vec *sum)
{
    const vec gain = splat(t->gain);
    vec offset[2] = {load(column->offset), load(column->offset + LANES)};
    vec mean[2] = {load(column->mean), load(column->mean + LANES)};
    for (u32 r = k * MICRO_ROWS; r < (k + 1) * MICRO_ROWS; r++) {
        expect_rows(t->expected, expect);
        if (!t->transposed) {
            offset[0] = offset[1] = splat(t->m->offset[r]);
            mean[0] = mean[1] = splat(t->m->mean[r]);
        }
        vec ds = pair_gradient(score + r * SCORE_STRIDE, slope + r * SCORE_STRIDE,
                               &b->weight[0][r][g->at], &b->weight[1][r][g->at], gain, offset,
                               mean, word ? word + r : 0);
        if (!t->transposed)
            sum[r] += ds;
    }
}

/* Group by group as matrix/flow.h does it; missing[r] += the sum of row r's dS. */
static void panels_gradient(const struct row_block *t, struct block *b, float *missing)
{
    struct subtrahends column = {{0}, {0}};
    vec sum[BLOCK_ROWS];
    u32 room[BLOCK_ROWS];
    const u32 expect = expect_share(t->expected, b->groups * t->rows);
    for (u32 r = 0; r < t->rows; r++)
        sum[r] = splat(0);
    panel_product(t, b->group, 0, b->score[0]);
    panel_product(t, b->group, 1, b->slope[0]);
    for (u32 k = 0; k < b->groups; k++) {
        const struct group *g = &b->group[k], *next = k + 1 < b->groups ? g + 1 : 0;
        const u32 at = k % 2 * TILE, to = TILE - at;
        const u32 *word = group_words(t, g, room);
        if (t->transposed)
            columns_read(t, g, &column);
        if (next)
            panel_product(t, next, 0, b->score[0] + to);
        if (g->live & 1)
            gradient_weigh(t, b, g, b->score[0] + at, b->slope[0] + at, word, 0, &column,
                           expect, sum);
        if (next)
            panel_product(t, next, 1, b->slope[0] + to);
        if (g->live & 2)
            gradient_weigh(t, b, g, b->score[0] + at, b->slope[0] + at, word, 1, &column,
                           expect, sum);
    }
    for (u32 r = 0; r < t->rows && !t->transposed; r++)
        missing[r] += sum_lanes(sum[r]);
}

#endif
