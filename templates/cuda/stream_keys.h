/* SPDX-License-Identifier: Apache-2.0 */
/* dK and dV of a strip of keys, over the transposed plan: rows are keys, columns are queries. */
#ifndef MASKC_CUDA_STREAM_KEYS_H
#define MASKC_CUDA_STREAM_KEYS_H
#include "cuda/stream_backward.h"

/* S of the stage's group to P; the columns' LSE and state lie with them. */
DEVICE void key_probabilities(const struct backward *b, struct scores *p)
{
    const half_t *columns = stream_operand(&b->stream, 0);
    const u32 *word = b->stream.now.word;
    const float slope = sparsegen_slope(b->a);
    UNROLL
    for (u32 f = 0; f < FRAGMENTS; f++) {
        UNROLL
        for (u32 u = 0; u < 2; u++) {
            float lse = shared_get(column_numbers(columns, 8 * f + lane_pair() + u));
            UNROLL
            for (u32 x = u; x < 4; x += 2) {
                float *at = &p->at[f].x[x];
                *at = sees(word, f, x) ? probability(b, *at, lse, slope) : 0;
            }
        }
    }
}

/* dP, after dropout, to dS. */
DEVICE void key_gradients(const struct backward *b, const struct scores *p, struct scores *dp)
{
    const half_t *columns = stream_operand(&b->stream, 0);
    UNROLL
    for (u32 f = 0; f < FRAGMENTS; f++) {
        UNROLL
        for (u32 u = 0; u < 2; u++) {
            float state = shared_get(column_numbers(columns, 8 * f + lane_pair() + u) + 1);
            UNROLL
            for (u32 x = u; x < 4; x += 2) {
                float *at = &dp->at[f].x[x];
                *at = score_gradient(p->at[f].x[x], *at, state);
            }
        }
    }
}

/* Sums of a walk: dK and dV together, or dK by the first and dV by the second. */
enum { KEY_SUMS = BOTH_AT_ONCE ? 2 : 1, KEY_WALKS = 3 - KEY_SUMS };

/* P of the stage's group and dP to sums of dK and dV. */
DEVICE void add_both(const struct backward *b, struct scores s[2], u32 kept, u32 live,
                     struct sums sums[KEY_SUMS])
{
    const struct group *g = &b->stream.now.group;
    const u32 *word = b->stream.now.word;
    dropout(&s[1], b->a, kept);
    soft_scale(&s[1], b->a, b->job, g, word, 1);
    key_gradients(b, &s[0], &s[1]);
    accumulate(&sums[0], &s[1], stream_operand(&b->stream, 0), live);
    soft_scale(&s[0], b->a, b->job, g, word, 1); /* X is in registers */
    dropout(&s[0], b->a, kept);
    accumulate(&sums[KEY_SUMS - 1], &s[0], stream_operand(&b->stream, 1), live);
}

/* To those of dK (0) or dV (1) alone, by one text. */
DEVICE void add_one(const struct backward *b, struct scores s[2], u32 kept, u32 live, u32 which,
                    struct sums *sums)
{
    if (which)
        s[1] = s[0];
    dropout(&s[1], b->a, kept);
    soft_scale(&s[1], b->a, b->job, &b->stream.now.group, b->stream.now.word, 1);
    if (!which)
        key_gradients(b, &s[0], &s[1]);
    accumulate(sums, &s[1], stream_operand(&b->stream, which), live);
}

DEVICE void add_key_group(const struct backward *b, u32 walk, struct sums sums[KEY_SUMS])
{
    struct scores s[2]; /* P and dP */
    u32 live = live_fragments(b->stream.now.word);
    if (!live)
        return;
    u32 kept = dropout_kept(&b->drop, &b->stream.now.group, live);
    backward_scores(b, s, walk == 0, live);
    backward_bias(b, &s[0], &b->stream.now.group, b->stream.now.word, 1);
    key_probabilities(b, &s[0]);
    if (BOTH_AT_ONCE)
        add_both(b, s, kept, live, sums);
    else
        add_one(b, s, kept, live, walk, sums);
}

/* The sums of dK (0) or dV (1), left to others. */
DEVICE void key_leave(const struct sums *s, const struct abi_args *a, const struct job *j,
                      u32 sum)
{
    NO_UNROLL
    for (u32 k = 0; k < 2; k++) {
        float *left = row_to_leave(a, j, k);
        if (left)
            sums_leave(s, k, left, sum);
    }
}

/* What others left of the rows is added. */
DEVICE void key_resume(struct sums *s, const struct abi_args *a, const struct job *j, u32 sum)
{
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        const float *from = row_to_resume(a, j, k);
        if (from)
            sums_join(s, k, from, sum, 1, 1);
    }
}

/* To the tensor, or to others. V's rows are not needed after dK, K's not after dV. */
DEVICE void key_end(struct backward *b, struct sums *s, u32 sum)
{
    const struct abi_args *a = b->a;
    const struct job *j = b->job;
    struct view to = view_of(sum ? &a->d_v : &a->d_k, j);
    float by = sum ? 1 : slope_scale(a);
    if (SHARED_ROWS && a->late)
        key_resume(s, a, j, sum);
    if (SHARED_ROWS && j->item->partial)
        key_leave(s, a, j, sum);
    else
        store_strip(s, by, by, sum ? b->rows : b->rows_grad, &to, j);
}

DEVICE void strip_key_gradients(const struct abi_args *a, const struct job *j)
{
    struct backward b;
    struct sums sums[KEY_SUMS];
    backward_start(&b, a, j, &a->k, &a->v);
    b.drop.rows_are_keys = 1;
    b.stream.a = a;
    b.stream.first = &a->q;
    b.stream.second = &a->d_o;
    b.stream.use = USE_FIRST | USE_SECOND | USE_NUMBERS;
    NO_UNROLL
    for (u32 walk = 0; walk < KEY_WALKS; walk++) {
        UNROLL
        for (u32 k = 0; k < KEY_SUMS; k++)
            sums_clear(&sums[k]);
        stream_start(&b.stream, j);
        NO_UNROLL
        while (stream_step(&b.stream))
            add_key_group(&b, walk, sums);
        NO_UNROLL
        for (u32 k = 0; k < KEY_SUMS; k++) { /* no index picks a register */
            key_end(&b, &sums[0], BOTH_AT_ONCE ? k : walk);
            sums[0] = sums[KEY_SUMS - 1];
        }
    }
}

#endif
