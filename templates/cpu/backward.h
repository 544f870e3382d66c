/* SPDX-License-Identifier: Apache-2.0 */
/* One item of the backward pass, for both plans. Scores and slopes dP = dO V^T are computed again;
   with P from the stored LSE (or tau), dS = P (dP - delta) for softmax, dS = (dP - mean of dP over
   the support) / (1 - lambda) there for sparsegen. Over the forward plan dQ = dS K, and delta or
   the mean go to `state`; over the transposed plan, where these belong to columns and are
   subtracted as soon as a group is scored, dK = dS^T Q and dV = P^T dO. */
#ifndef MASKC_CPU_BACKWARD_H
#define MASKC_CPU_BACKWARD_H

#if AMX
#include "cpu/gradient_amx.h"
#else
INLINE int panels_alone(const struct strip *t, const struct block *b)
{
    (void)t, (void)b;
    return 0;
}

INLINE void panels_gradient(const struct strip *t, struct block *b, float *missing)
{
    (void)t, (void)b, (void)missing;
}
#endif

/* ---- slopes of a group ---- */

static void panel_slopes(const struct strip *t, struct block *b, const struct group *g)
{
    u32 used = (1u << (t->rows / BLOCK_ROWS)) - 1;
    float *to = &b->slope[0][g->at];
    scores_product(to, strip_rows(t, 1), &t->operand[1], g->first, g->live);
    panel_fill(to, used & ~g->live, 0);
}

static void walk_slopes(const struct strip *t, struct block *b, const struct group *g)
{
    for (u32 r = 0; r < t->rows; r++) {
        const u32 *column = &b->column[r][g->at];
        u32 count = walk_count(column, g->width);
        walk_dots(t->m->row[1][r], &t->operand[1], column, count, &b->slope[r][g->at]);
        for (u32 k = count; k < g->width; k++)
            b->slope[r][g->at + k] = 0;
    }
}

static void group_drop_slopes(const struct strip *t, struct block *b, const struct group *g)
{
    float kept = t->s.a->keep_scale;
    for (u32 r = 0; r < t->rows; r++)
        for (u32 c = g->at; c < g->at + g->width; c++)
            b->slope[r][c] *= b->keep[r][c / 32] >> (c % 32) & 1 ? kept : 0;
}

static void columns_slopes(const struct strip *t, struct block *b, const struct group *g)
{
    u32 used = (1u << (t->rows / BLOCK_ROWS)) - 1;
    float *to = &b->slope[0][g->at];
    columns_product(t, g, 1, to);
    panel_fill(to, used & ~g->live, 0);
}

/* The transposed plan: offsets and means of the columns, from every row. */
static void panel_subtract(const struct strip *t, struct block *b, const struct group *g)
{
    const float gain = AMX ? t->gain : 1;
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

static void walk_subtract(const struct strip *t, struct block *b, const struct group *g)
{
    for (u32 r = 0; r < t->rows; r++) {
        const u32 *column = &b->column[r][g->at];
        u32 count = walk_count(column, g->width);
        for (u32 k = 0; k < count; k++) {
            float *score = &b->score[r][g->at + k];
            *score = *score * (AMX ? t->gain : 1) - score_offset(*lse_at(&t->s, column[k]));
            b->slope[r][g->at + k] -= *state_at(&t->s, column[k]);
        }
    }
}

static void block_slopes(const struct strip *t, struct block *b)
{
    if (dropping(t))
        keep_clear(t, b);
    for (u32 k = 0; k < b->groups; k++) {
        const struct group *g = &b->group[k];
        group_scores(t, b, g);
        if (g->kind == GROUP_PANEL)
            panel_slopes(t, b, g);
        else if (g->kind == GROUP_COLUMNS)
            columns_slopes(t, b, g);
        else
            walk_slopes(t, b, g);
        if (dropping(t)) {
            group_keep(t, b, g);
            group_drop_slopes(t, b, g);
        }
        if (!t->transposed || panels_alone(t, b))
            continue;
        group_scale_slopes(t, b, g);
        if (group_is_panel(g))
            panel_subtract(t, b, g);
        else
            walk_subtract(t, b, g);
    }
    block_close(t, b);
}

/* ---- scores and slopes to P (in score) and dS (in slope) ---- */

static void block_gradient(const struct strip *t, struct block *b)
{
    const float inverse = 1 / (1 - t->s.a->lambda), gain = AMX ? t->gain : 1;
    for (u32 r = 0; r < t->rows; r++) {
        vec offset = splat(t->m->offset[r]), mean = splat(t->m->mean[r]);
        for (u32 c = 0; c < b->cols; c += LANES) {
            vec s = load(&b->score[r][c]), slope = load(&b->slope[r][c]), raw = slope;
            if (!t->transposed) {
                s = s * gain - offset;
                slope = soft_scaled(b, r, c, raw) - mean;
            }
            vec p, ds;
            if (IS_SOFTMAX) {
                p = exp2_vec(s);
                ds = p * slope;
            } else {
                ivec above = (ivec)(s > 0.0f);
                p = pick_or_zero(above, s * splat(inverse));
                ds = pick_or_zero(above, slope * splat(inverse));
            }
            store(&b->score[r][c], p);
            store(&b->slope[r][c], ds);
            if (!t->transposed)
                soft_put(b, r, c, p, raw);
            weight_put(b, 0, r, c, p);
            weight_put(b, 1, r, c, ds);
        }
    }
}

/* Mean slope over each row's support. */
static void strip_means(const struct strip *t, u32 blocks)
{
    for (u32 r = 0; r < t->rows; r++) {
        vec sum = {0}, count = {0};
        for (u32 k = 0; k < blocks; k++) {
            const struct block *b = strip_block(t, k);
            for (u32 c = 0; c < b->cols; c += LANES) {
                ivec above = (ivec)(load(&b->score[r][c]) > splat(t->m->offset[r]));
                sum += pick_or_zero(above, soft_scaled(b, r, c, load(&b->slope[r][c])));
                count += pick_or_zero(above, splat(1));
            }
        }
        float n = sum_lanes(count);
        t->m->mean[r] = n > 0 ? sum_lanes(sum) / n : 0;
    }
}

/* The gradient of a soft mask is dS itself: where O was rounded to 16 bits, delta is summed up from
   P dP before anything else. */
enum { DELTA_FIRST = SOFT && IS_SOFTMAX && !IS_F32 };

static void block_delta(const struct strip *t, const struct block *b)
{
    const float gain = AMX ? t->gain : 1;
    for (u32 r = 0; r < t->rows; r++) {
        vec sum = {0};
        for (u32 c = 0; c < b->cols; c += LANES) {
            vec p = exp2_vec(load(&b->score[r][c]) * gain - splat(t->m->offset[r]));
            sum += p * soft_scaled(b, r, c, load(&b->slope[r][c]));
        }
        t->m->mean[r] += sum_lanes(sum);
    }
}

/* True where one block has all columns: its slopes are there still. Else they are to come again. */
static int strip_deltas_first(struct strip *t)
{
    struct block *b = t->blocks;
    u32 groups = 0, cols = 0, walks = 0, blocks = 0;
    for (u32 r = 0; r < t->rows; r++)
        t->m->mean[r] = 0;
    for (; block_next(t, b); blocks++) {
        block_slopes(t, b);
        block_delta(t, b);
        groups = b->groups;
        cols = b->cols;
        walks = b->walks;
    }
    t->piece = t->entry = t->offset = 0;
    if (blocks != 1)
        return 0;
    b->groups = groups;
    b->cols = cols;
    b->walks = walks;
    return 1;
}

/* An O that was rounded to 16 bits is too far off for dO O: what is missing from it is summed up
   as dS, whose rows should come to 0, and taken off at the end: dQ = sum dS K - missing sum P K. */
enum { DELTA_LATE = IS_SOFTMAX && !IS_F32 && !SOFT };

static void late_block(const struct strip *t, struct block *b, float *missing)
{
    for (u32 r = 0; r < t->rows && !panels_alone(t, b); r++) {
        vec sum = {0};
        for (u32 c = 0; c < b->cols; c += LANES)
            sum += load(&b->slope[r][c]);
        missing[r] += sum_lanes(sum);
    }
    block_sums(t, b, (const float(*)[SCORE_STRIDE])b->score, 0, t->m->sums[1]);
}

static void late_finish(const struct strip *t, const float *missing)
{
    for (u32 r = 0; r < t->rows; r++) {
        t->m->mean[r] += missing[r];
        for (u32 d = 0; d < WIDTH; d += LANES)
            store(&t->m->sums[0][r][d],
                  load(&t->m->sums[0][r][d]) - splat(missing[r]) * load(&t->m->sums[1][r][d]));
    }
}

/* An O that f16 could not hold: any number near it will do, see DELTA_LATE, but infinity would not. */
INLINE vec output_finite(vec o)
{
    const vec least = splat(-65504.0f);
    return IS_F16 ? -larger(least, -larger(least, o)) : o;
}

/* Row sums of dO O, which are those of P dP. */
static void strip_deltas(const struct strip *t)
{
    for (u32 r = 0; r < t->rows; r++) {
        t->m->mean[r] = 0;
        if (!row_live(t, r))
            continue;
        float o[WIDTH];
        vec sum = {0};
        row_read(&t->s, &t->s.a->o, row_of(t->item, r), 1, o);
        for (u32 d = 0; d < WIDTH; d += LANES)
            sum += output_finite(load(o + d)) * load(&t->m->row[1][r][d]);
        t->m->mean[r] = sum_lanes(sum);
    }
}

static void block_backward(const struct strip *t, struct block *b, float *missing)
{
    if (panels_alone(t, b))
        panels_gradient(t, b, missing);
    else
        block_gradient(t, b);
    block_sums(t, b, (const float(*)[SCORE_STRIDE])b->slope, 0, t->m->sums[0]);
    if (!t->transposed) {
        soft_gradient(t, b);
        return;
    }
    block_scale(t, b);
    if (dropping(t))
        block_drop(t, b);
    if (dropping(t) || SOFT == ABI_SOFT_SCALE)
        weights_round(t, b);
    block_sums(t, b, (const float(*)[SCORE_STRIDE])b->score, 1, t->m->sums[1]);
}

static void backward_resume(const struct strip *t, u32 sums, float *missing)
{
    for (u32 r = 0; r < t->item->rows; r++) {
        if (!row_resumed(t, r))
            continue;
        for (u32 k = 0; k < sums; k++)
            partial_add(t, k, r, 1, 1);
        missing[r] += partial_numbers(t, r)[0];
    }
}

static void strip_backward(struct strip *t)
{
    u32 blocks = 0, late = DELTA_LATE && !t->transposed;
    const u32 sums = late || t->transposed ? 2 : 1;
    float missing[STRIP_ROWS] = {0};
    if (DELTA_FIRST && !t->transposed && strip_deltas_first(t)) {
        block_backward(t, t->blocks, missing);
        return;
    }
    if (!BLOCKS_KEPT || t->transposed) {
        partial_expect(t, sums);
        for (struct block *b = t->blocks; block_next(t, b);) {
            block_slopes(t, b);
            block_backward(t, b, missing);
            if (late)
                late_block(t, b, missing);
        }
        if (t->item->partial)
            partial_leave(t, sums, missing, missing);
        if (t->item->resume[0])
            backward_resume(t, sums, missing);
        if (late && !t->item->partial)
            late_finish(t, missing);
        return;
    }
    for (; block_next(t, strip_block(t, blocks)); blocks++)
        block_slopes(t, strip_block(t, blocks));
    strip_means(t, blocks);
    for (u32 k = 0; k < blocks; k++)
        block_backward(t, strip_block(t, k), missing);
}

static void backward_write(const struct strip *t, const struct abi_tensor *to, float factor,
                           u32 which)
{
    for (u32 r = 0; r < t->item->rows; r++) {
        u32 i = row_of(t->item, r);
        if (!row_owned(t->item, r) || i >= t->s.rows)
            continue;
        if (row_live(t, r))
            row_write(&t->s, to, i, factor, t->m->sums[which][r]);
        else
            row_clear(&t->s, to, i);
    }
}

/* Items of one kind go from rows to gradients in registers and L1. */
static int backward_alone(const struct sequence *s, const struct abi_plan *p,
                          const struct abi_item *item, u8 *scratch)
{
    if (!plain_softmax(s))
        return 0;
    if (wide_alone(s, p, item)) {
        wide_backward(s, p, item, scratch);
        return 1;
    }
    if (lines_alone(p, item)) {
        lines_backward(s, p, item, scratch);
        return 1;
    }
    if (row_alone(p, item)) {
        row_backward(s, p, item);
        return 1;
    }
    return 0;
}

static void dq_item(const struct sequence *s, const struct abi_item *item, u8 *scratch)
{
    struct strip t;
    if (backward_alone(s, &s->a->forward, item, scratch))
        return;
    strip_open(&t, s, &s->a->forward, item, 0, scratch);
    if (t.live) {
        strip_take(&t, &s->a->q, t.factor, 0);
        strip_read(&t, &s->a->d_o, 1, t.m->row[1]);
        strip_round(&t, 1);
        strip_expect(&t, &s->a->q, &s->a->d_q);
        strip_expect(&t, &s->a->d_o, 0);
        strip_expect(&t, &s->a->o, 0);
        strip_clear_sums(&t, 0);
        if (DELTA_LATE)
            strip_clear_sums(&t, 1);
        for (u32 r = 0; r < t.rows; r++)
            t.m->offset[r] = row_live(&t, r) ? score_offset(*lse_at(s, row_of(item, r))) : 0;
        if (IS_SOFTMAX && !DELTA_FIRST)
            strip_deltas(&t);
        strip_backward(&t);
        for (u32 r = 0; r < item->rows; r++)
            if (row_live(&t, r) && !item->partial)
                *state_at(s, row_of(item, r)) = t.m->mean[r];
    }
    if (!item->partial)
        backward_write(&t, &s->a->d_q, s->a->scale, 0);
}

static void dkv_item(const struct sequence *s, const struct abi_item *item, u8 *scratch)
{
    struct strip t;
    if (backward_alone(s, &s->a->transposed, item, scratch))
        return;
    strip_open(&t, s, &s->a->transposed, item, 1, scratch);
    if (t.live) {
        strip_take(&t, &s->a->k, t.factor, 0);
        strip_take(&t, &s->a->v, 1, 1);
        strip_expect(&t, &s->a->k, &s->a->d_k);
        strip_expect(&t, &s->a->v, &s->a->d_v);
        strip_clear_sums(&t, 0);
        strip_clear_sums(&t, 1);
        strip_backward(&t);
    }
    if (item->partial)
        return;
    backward_write(&t, &s->a->d_k, s->a->scale, 0);
    backward_write(&t, &s->a->d_v, dropping(&t) ? s->a->keep_scale : 1, 1);
}

#endif
