/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass of a row alone that sees one range of columns; see lines/backward.h. */
#ifndef MASKC_CPU_LINES_ROW_BACKWARD_H
#define MASKC_CPU_LINES_ROW_BACKWARD_H

static void row_put(const struct sequence *s, const struct abi_tensor *t, u32 i, float factor,
                    const float *weight, const struct operand *o, struct row_range at)
{
    float buffer[WIDTH];
    float *to = ROWS_PACKED ? buffer : (float *)t->data + element_at(s, t, i);
    row_sums(to, weight, o, at, factor);
    if (ROWS_PACKED)
        row_write(s, t, i, 1, buffer);
}

static void row_dq(const struct sequence *s, u32 i, struct row_range at, struct block *b)
{
    struct operand key = operand_of(s, OPERAND_KEY), value = operand_of(s, OPERAND_VALUE);
    float *score = b->score[0], *slope = b->slope[0], buffer[WIDTH];
    const vec offset = splat(score_offset(*lse_at(s, i)));
    vec sum = {0}, weights = {0};
    row_dots(score, row_floats(s, &s->a->q, i, buffer), &key, at, s->a->scale * LOG2_E,
             -INFINITY_F);
    row_dots(slope, row_floats(s, &s->a->d_o, i, buffer), &value, at, 1, 0);
    for (u32 c = 0; c < at.count; c += LANES) {
        vec p = exp2_weight(load(score + c) - offset);
        store(score + c, p);
        sum += p * load(slope + c);
        weights += p;
    }
    float delta = *state_at(s, i) = delta_of(sum_lanes(sum), sum_lanes(weights));
    for (u32 c = 0; c < at.count; c += LANES)
        store(slope + c, load(score + c) * (load(slope + c) - splat(delta)));
    row_put(s, &s->a->d_q, i, s->a->scale, slope, &key, at);
}

static void row_dkv(const struct sequence *s, u32 i, struct row_range at, struct block *b)
{
    struct operand query = operand_of(s, OPERAND_QUERY);
    struct operand gradient = operand_of(s, OPERAND_GRADIENT);
    float *score = b->score[0], *slope = b->slope[0], buffer[WIDTH];
    const float *lse = lse_at(s, at.first), *delta = state_at(s, at.first);
    row_dots(score, row_floats(s, &s->a->k, i, buffer), &query, at, s->a->scale * LOG2_E,
             -INFINITY_F);
    row_dots(slope, row_floats(s, &s->a->v, i, buffer), &gradient, at, 1, 0);
    for (u32 c = 0; c < at.count; c++) {
        score[c] -= score_offset(lse[c]);
        slope[c] -= delta[c];
    }
    for (u32 c = 0; c < at.count; c += LANES) {
        vec p = exp2_weight(load(score + c));
        store(score + c, p);
        store(slope + c, p * load(slope + c));
    }
    row_put(s, &s->a->d_k, i, s->a->scale, slope, &query, at);
    row_put(s, &s->a->d_v, i, 1, score, &gradient, at);
}

static void row_backward(const struct sequence *s, const struct abi_plan *p,
                         const struct abi_item *item, u8 *scratch)
{
    struct row_range at = row_range_of(s, p, item);
    const int transposed = p == &s->a->transposed;
    u32 i = item->row0;
    if (i >= s->rows)
        return;
    if (i < s->length && at.count) {
        (transposed ? row_dkv : row_dq)(s, i, at, row_alone_block(scratch));
        return;
    }
    row_without_entries(s, i, transposed);
}

#endif
