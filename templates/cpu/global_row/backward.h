/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass of a global row; the equations are those of diagonal/backward.h. */
#ifndef MASKC_CPU_GLOBAL_ROW_BACKWARD_H
#define MASKC_CPU_GLOBAL_ROW_BACKWARD_H
#include "cpu/diagonal/product.h"
#include "cpu/global_row/row.h"

/* P or dS of a row, and the factor of its sum. */
struct scaled_row {
    const float *p;
    float scale;
};

static void global_row_put(const struct sequence *s, const struct abi_tensor *t, u32 i,
                           struct scaled_row x, const struct operand *o, struct row_range at)
{
    float buffer[WIDTH];
    float *to = ROWS_PACKED ? buffer : (float *)t->data + element_at(s, t, i);
    global_row_sums(to, x.p, o, at, x.scale);
    if (ROWS_PACKED)
        row_write(s, t, i, 1, buffer);
}

static void global_row_dq(const struct sequence *s, u32 i, struct row_range at, struct block *b)
{
    struct operand key = operand_of(s, OPERAND_KEY), value = operand_of(s, OPERAND_VALUE);
    float *score = b->score[0], *dp = b->dp[0], buffer[WIDTH];
    const vec offset = splat(score_offset(*lse_at(s, i)));
    vec sum = {0}, p_sum = {0};
    global_row_dots(score, row_floats(s, &s->a->q, i, buffer), &key, at, s->a->scale * LOG2_E,
                    -INFINITY_F);
    global_row_dots(dp, row_floats(s, &s->a->d_o, i, buffer), &value, at, kept_scale(s), 0);
    global_row_drop(dp, at.count, global_row_keep(s, i, at, 0, b));
    for (u32 c = 0; c < at.count; c += LANES) {
        vec p = exp2_p(load(score + c) - offset);
        store(score + c, p);
        sum += p * load(dp + c);
        p_sum += p;
    }
    float delta = *delta_at(s, i) = delta_of(sum_lanes(sum), sum_lanes(p_sum));
    for (u32 c = 0; c < at.count; c += LANES)
        store(dp + c, load(score + c) * (load(dp + c) - splat(delta)));
    global_row_put(s, &s->a->d_q, i, (struct scaled_row){dp, s->a->scale}, &key, at);
}

static void global_row_dkv(const struct sequence *s, u32 i, struct row_range at,
                           struct block *b)
{
    struct operand query = operand_of(s, OPERAND_QUERY);
    struct operand gradient = operand_of(s, OPERAND_GRADIENT);
    float *score = b->score[0], *dp = b->dp[0], buffer[WIDTH];
    const float *lse = lse_at(s, at.first), *delta = delta_at(s, at.first);
    const u32 *keep = global_row_keep(s, i, at, 1, b);
    global_row_dots(score, row_floats(s, &s->a->k, i, buffer), &query, at, s->a->scale * LOG2_E,
                    -INFINITY_F);
    global_row_dots(dp, row_floats(s, &s->a->v, i, buffer), &gradient, at, kept_scale(s), 0);
    global_row_drop(dp, at.count, keep);
    for (u32 c = 0; c < at.count; c++) {
        score[c] -= score_offset(lse[c]);
        dp[c] -= delta[c];
    }
    for (u32 c = 0; c < at.count; c += LANES) {
        vec p = exp2_p(load(score + c));
        store(score + c, p);
        store(dp + c, p * load(dp + c));
    }
    global_row_put(s, &s->a->d_k, i, (struct scaled_row){dp, s->a->scale}, &query, at);
    global_row_drop(score, at.count, keep);
    global_row_put(s, &s->a->d_v, i, (struct scaled_row){score, kept_scale(s)}, &gradient, at);
}

static void global_row_backward(const struct sequence *s, const struct abi_plan *p,
                                const struct abi_item *item, u8 *scratch)
{
    struct row_range at = row_range_of(s, p, item);
    const int transposed = p == &s->a->transposed;
    u32 i = item->row0;
    if (i >= s->rows)
        return;
    if (i < s->length && at.count) {
        (transposed ? global_row_dkv : global_row_dq)(s, i, at, global_row_block(scratch));
        return;
    }
    global_row_empty(s, i, transposed);
}

#endif
