/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and the row pass: each row has a list of columns of its own; an entry is a dot product
   with one row of the operand, and later one scaled row added to the sums. Four dot products share
   the additions across lanes. */
#ifndef MASKC_CPU_WALK_H
#define MASKC_CPU_WALK_H

/* The row's active columns in this group, in order; returns how many. */
INLINE u32 walk_columns(const struct strip *t, const struct group *g, u32 r, u32 *to)
{
    u32 count = 0;
    if (g->kind == GROUP_RANGE) {
        for (u32 k = 0; k < g->width && r == 0; k++)
            to[count++] = g->first + k;
        return count;
    }
    const struct abi_line *line = t->plan->lines + g->first;
    for (u32 k = 0; k < g->width; k++) {
        u32 col = (u32)line[k].col0 + line[k].step * r;
        to[count] = col;
        count += (r >= line[k].row_begin) & (r < line[k].row_end) & (col < t->s.length);
    }
    return count;
}

INLINE const float *operand_row(const struct operand *o, u32 j)
{
    return o->rows + j * o->stride;
}

INLINE quad dots4(const float *a, const float *b0, const float *b1, const float *b2,
                  const float *b3)
{
    vec s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (u32 d = 0; d < WIDTH; d += LANES) {
        vec x = load(a + d);
        s0 += x * load(b0 + d);
        s1 += x * load(b1 + d);
        s2 += x * load(b2 + d);
        s3 += x * load(b3 + d);
    }
    return sum4(s0, s1, s2, s3);
}

/* Dot products with `count` rows of an operand; up to three more floats are overwritten. */
static void walk_dots(const float *a, const struct operand *o, const u32 *column, u32 count,
                      float *to)
{
    for (u32 k = 0; k < count; k += 4) {
        u32 last = count - 1;
        *(quad_at *)(to + k) = dots4(a, operand_row(o, column[k]),
                                     operand_row(o, column[k + 1 < last ? k + 1 : last]),
                                     operand_row(o, column[k + 2 < last ? k + 2 : last]),
                                     operand_row(o, column[k + 3 < last ? k + 3 : last]));
    }
}

static void walk_keep(const struct strip *t, struct block *b, const struct group *g, u32 r)
{
    const u32 *column = &b->column[r][g->at];
    for (u32 k = 0; k < g->width && column[k] != NO_COLUMN; k++)
        keep_put(b, r, g->at + k, 1, (u32)keep_entry(t, t->item->row0 + r, column[k]));
}

/* Columns and scores of a group, -inf for what a row does not have. */
static void walk_scores(const struct strip *t, struct block *b, const struct group *g)
{
    for (u32 r = 0; r < t->rows; r++) {
        u32 *column = &b->column[r][g->at];
        float *to = &b->score[r][g->at];
        u32 count = row_live(t, r) ? walk_columns(t, g, r, column) : 0;
        walk_dots(t->m->row[0][r], &t->operand[0], column, count, to);
        for (u32 k = count; k < g->width; k++) {
            column[k] = NO_COLUMN;
            to[k] = -INFINITY_F;
        }
    }
}

enum { WALK_LANES = 4 * LANES };

/* sums[d .. d + 4 vectors] += weight x rows; in registers over all columns of the row. */
INLINE void walk_sum4(float *sums, const float *weight, const struct operand *o,
                      const u32 *column, u32 count, u32 d)
{
    vec s0 = load(sums + d), s1 = load(sums + d + LANES);
    vec s2 = load(sums + d + 2 * LANES), s3 = load(sums + d + 3 * LANES);
    for (u32 k = 0; k < count; k++) {
        const float *row = operand_row(o, column[k]) + d;
        vec w = splat(weight[k]);
        s0 += w * load(row);
        s1 += w * load(row + LANES);
        s2 += w * load(row + 2 * LANES);
        s3 += w * load(row + 3 * LANES);
    }
    store(sums + d, s0);
    store(sums + d + LANES, s1);
    store(sums + d + 2 * LANES, s2);
    store(sums + d + 3 * LANES, s3);
}

INLINE void walk_sum1(float *sums, const float *weight, const struct operand *o,
                      const u32 *column, u32 count, u32 d)
{
    vec s = load(sums + d);
    for (u32 k = 0; k < count; k++)
        s += splat(weight[k]) * load(operand_row(o, column[k]) + d);
    store(sums + d, s);
}

static void walk_sums(const struct strip *t, const struct block *b, const struct group *g,
                      const float (*weight)[SCORE_STRIDE], u32 operand, float (*sums)[WIDTH])
{
    const struct operand *o = &t->operand[operand];
    for (u32 r = 0; r < t->rows; r++) {
        const u32 *column = &b->column[r][g->at];
        const float *w = &weight[r][g->at];
        u32 count = 0, d = 0;
        while (count < g->width && column[count] != NO_COLUMN)
            count++;
        for (; d + WALK_LANES <= WIDTH; d += WALK_LANES)
            walk_sum4(sums[r], w, o, column, count, d);
        for (; d < WIDTH; d += LANES)
            walk_sum1(sums[r], w, o, column, count, d);
    }
}

#endif
