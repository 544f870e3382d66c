/* SPDX-License-Identifier: Apache-2.0 */
/* One item of the backward pass, for both plans. Scores and slopes dP = dO V^T are computed again;
   with P from the stored LSE (or tau), dS = P (dP - delta) for softmax, dS = (dP - mean of dP over
   the support) / (1 - lambda) there for sparsegen. Over the forward plan dQ = dS K, and delta or
   the mean go to `state`; over the transposed plan, where these belong to columns and are
   subtracted as soon as a group is scored, dK = dS^T Q and dV = P^T dO. */
#ifndef MASKC_CPU_BACKWARD_H
#define MASKC_CPU_BACKWARD_H

/* ---- scores and slopes to P (in score) and dS (in slope) ---- */

static void block_gradient(const struct row_block *t, struct block *b)
{
    const float inverse = 1 / (1 - t->s.a->lambda), gain = MATRIX ? t->gain : 1;
    const u32 expect = expect_share(t->expected, t->rows);
    for (u32 r = 0; r < t->rows; r++) {
        vec offset = splat(t->m->offset[r]), mean = splat(t->m->mean[r]);
        expect_rows(t->expected, expect);
        for (u32 c = 0; c < b->cols; c += LANES) {
            vec s = load(&b->score[r][c]), slope = load(&b->slope[r][c]), raw = slope;
            if (!t->transposed) {
                s = s * gain - offset;
                slope = bias_scaled(b, r, c, raw) - mean;
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
                bias_put(b, r, c, p, raw);
            weight_put(b, 0, r, c, p);
            weight_put(b, 1, r, c, ds);
        }
    }
}

/* Mean slope over each row's support. */
static void row_block_means(const struct row_block *t, u32 blocks)
{
    for (u32 r = 0; r < t->rows; r++) {
        vec sum = {0}, count = {0};
        for (u32 k = 0; k < blocks; k++) {
            const struct block *b = row_block_block(t, k);
            for (u32 c = 0; c < b->cols; c += LANES) {
                ivec above = (ivec)(load(&b->score[r][c]) > splat(t->m->offset[r]));
                sum += pick_or_zero(above, bias_scaled(b, r, c, load(&b->slope[r][c])));
                count += pick_or_zero(above, splat(1));
            }
        }
        float n = sum_lanes(count);
        t->m->mean[r] = n > 0 ? sum_lanes(sum) / n : 0;
    }
}

static void block_backward(const struct row_block *t, struct block *b, float *missing)
{
    if (panels_alone(t, b))
        panels_gradient(t, b, missing);
    else
        block_gradient(t, b);
    block_sums(t, b, (const float(*)[SCORE_STRIDE])b->slope, 0, 0);
    if (!t->transposed) {
        bias_gradient(t, b);
        return;
    }
    block_scale(t, b);
    if (dropping(t))
        block_drop(t, b);
    if (dropping(t) || BIAS == ABI_BIAS_SCALE)
        weights_round(t, b);
    block_sums(t, b, (const float(*)[SCORE_STRIDE])b->score, 1, 1);
}

static void row_block_backward(struct row_block *t)
{
    u32 blocks = 0, late = DELTA_LATE && !t->transposed;
    const u32 sums = late || t->transposed ? 2 : 1;
    float missing[BLOCK_ROWS];
    for (u32 r = 0; r < BLOCK_ROWS; r++)
        missing[r] = row_resumed(t, r) ? partial_numbers(t, r)[0] : 0;
    if (DELTA_FIRST && !t->transposed && row_block_deltas_first(t)) {
        block_backward(t, t->blocks, missing);
        return;
    }
    if (!BLOCKS_KEPT || t->transposed) {
        struct block *b = t->blocks;
        int some = block_next(t, b);
        if (some && row_block_whole(t)) {
            if (BIAS) {
                whole_deltas(t, b);
                block_backward(t, b, missing);
            } else {
                whole_backward(t, b);
            }
            return;
        }
        row_block_deltas(t);
        partial_expect(t, sums);
        for (; some; some = block_next(t, b)) {
            if (!panels_alone(t, b))
                block_slopes(t, b);
            block_backward(t, b, missing);
            if (late)
                late_block(t, b, missing);
        }
        for (u32 k = 0; k < sums; k++)
            row_block_begin_sums(t, k);
        if (t->item->split)
            partial_leave(t, sums, missing, missing);
        if (late && !t->item->split)
            late_finish(t, missing);
        return;
    }
    for (; block_next(t, row_block_block(t, blocks)); blocks++)
        block_slopes(t, row_block_block(t, blocks));
    row_block_means(t, blocks);
    for (u32 k = 0; k < blocks; k++)
        block_backward(t, row_block_block(t, k), missing);
}

static void backward_write(const struct row_block *t, const struct abi_tensor *to, float factor,
                           u32 which)
{
    float each[BLOCK_ROWS];
    for (u32 r = 0; r < BLOCK_ROWS; r++)
        each[r] = factor;
    row_block_write(t, to, which, each);
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
    if (row_alone(p, item)) {
        row_backward(s, p, item, scratch);
        return 1;
    }
    return 0;
}

static void dq_item(const struct sequence *s, const struct abi_item *item, u8 *scratch)
{
    struct row_block t;
    struct expected x;
    if (backward_alone(s, &s->a->forward, item, scratch))
        return;
    row_block_open(&t, s, &s->a->forward, item, 0, &x, scratch);
    if (t.live) {
        row_block_take(&t, &s->a->q, t.factor, 0);
        row_block_take(&t, &s->a->d_o, 1, 1);
        row_block_expect(&t, &s->a->q, &s->a->d_q);
        row_block_expect(&t, &s->a->d_o, 0);
        row_block_open_sums(&t, 0);
        if (DELTA_LATE)
            row_block_open_sums(&t, 1);
        for (u32 r = 0; r < t.rows; r++)
            t.m->offset[r] = row_live(&t, r) ? score_offset(*lse_at(s, row_of(item, r))) : 0;
        row_block_backward(&t);
        for (u32 r = 0; r < item->rows; r++)
            if (row_live(&t, r) && !item->split)
                *state_at(s, row_of(item, r)) = t.m->mean[r];
    }
    expect_rows(&x, x.rows);
    if (!item->split)
        backward_write(&t, &s->a->d_q, s->a->scale, 0);
}

static void dkv_item(const struct sequence *s, const struct abi_item *item, u8 *scratch)
{
    struct row_block t;
    struct expected x;
    if (backward_alone(s, &s->a->transposed, item, scratch))
        return;
    row_block_open(&t, s, &s->a->transposed, item, 1, &x, scratch);
    if (t.live) {
        row_block_take(&t, &s->a->k, t.factor, 0);
        row_block_take(&t, &s->a->v, 1, 1);
        row_block_expect(&t, &s->a->k, &s->a->d_k);
        row_block_expect(&t, &s->a->v, &s->a->d_v);
        row_block_open_sums(&t, 0);
        row_block_open_sums(&t, 1);
        row_block_backward(&t);
    }
    expect_rows(&x, x.rows);
    if (item->split)
        return;
    backward_write(&t, &s->a->d_k, s->a->scale, 0);
    backward_write(&t, &s->a->d_v, dropping(&t) ? s->a->keep_scale : 1, 1);
}

/* An item of a plan, or as many of its neighbours as go together; how many. */
static u32 backward_items(const struct sequence *s, const struct abi_plan *p,
                          const struct abi_item *item, u32 neighbours, u8 *scratch)
{
    const u32 lines = lines_together(s, p, item, neighbours);
    if (lines)
        lines_backward(s, p, item, lines);
    else if (p == &s->a->transposed)
        dkv_item(s, item, scratch);
    else
        dq_item(s, item, scratch);
    return lines ? lines : 1;
}

#endif
