/* SPDX-License-Identifier: Apache-2.0 */
/* Backward over a strip: dQ over the forward plan, dK and dV over the transposed one, with the same
   steps. Both recompute P from the row's LSE (or tau). For softmax dS = P (dP - delta), where delta is
   the sum of P dP; for sparsegen dS = (dP - mean of dP over the support) / (1 - lambda) on the
   support. Delta is dO . O, but for an O rounded to 16 bits that is too far off: what is missing is
   known after the walk, and then times the sum of P K taken from dQ. The mean takes a walk of its own.
   dQ leaves the state in args.state for dK. */
#ifndef MASKC_CUDA_STREAM_BACKWARD_H
#define MASKC_CUDA_STREAM_BACKWARD_H
#include "cuda/stream_dropout.h"

enum {
    BACKWARD_BUFFERS = STEPS <= 8 ? 2 : 1,
    BACKWARD_HALVES = 2 * STRIP + 2 * BACKWARD_BUFFERS * OPERAND,
    BOTH_AT_ONCE = STEPS <= 8, /* dK and dV in registers together, else one walk for each */
    /* dQ by one walk: the mean of sparsegen is not known closely enough before. */
    ONE_WALK = BOTH_AT_ONCE && TRANSFORM == ABI_SOFTMAX,
};

typedef char backward_shared_is_enough[BACKWARD_SHARED >= 2 * BACKWARD_HALVES ? 1 : -1];

struct backward {
    const struct abi_args *a;
    const struct job *job;
    struct stream stream;
    struct drop drop;
    half_t *rows, *rows_grad; /* shared: the strip's rows; Q and dO, or K and V */
    float scale;              /* to base 2 for softmax */
    float unit; /* what a score is multiplied with: a bias is added after the scale */
};

DEVICE void backward_units(struct backward *b, const struct abi_args *a)
{
    b->scale = TRANSFORM == ABI_SPARSEGEN ? a->scale : a->scale * LOG2_E;
    b->unit = BIAS ? 1 : b->scale;
}

/* Rows are on their way, and the columns of the first stage. */
DEVICE void backward_start(struct backward *b, const struct abi_args *a, const struct job *j,
                           const struct abi_tensor *rows, const struct abi_tensor *rows_grad)
{
    struct view first = view_of(rows, j), second = view_of(rows_grad, j);
    b->a = a;
    b->job = j;
    b->drop.a = a;
    b->drop.job = j;
    b->rows = SHARED_HALF();
    b->rows_grad = b->rows + STRIP;
    b->stream.buffer = b->rows + 2 * STRIP;
    b->stream.buffers = BACKWARD_BUFFERS;
    backward_units(b, a);
    SYNC();
    NO_UNROLL
    for (u32 k = 0; k < 2; k++) {
        struct view v = {k ? second.data : first.data, k ? second.row : first.row};
        copy_strip(b->rows + k * STRIP, &v, j);
    }
    copy_async_commit();
}

/* S and dP of a stage, or S alone: the warp's rows times the stage's columns. */
DEVICE void backward_scores(const struct backward *b, struct scores s[2], u32 both, u32 live)
{
    const u32 at = THREAD / 32 * 16 * PITCH;
    const half_t *rows[2] = {b->rows + at, b->rows_grad + at};
    const half_t *columns[2] = {stream_operand(&b->stream, 0), stream_operand(&b->stream, 1)};
    if (both)
        scores_of_both(s, rows, columns, live);
    else
        scores_of_shared(&s[0], rows[0], 0, columns[0], live);
}

/* A bias to the scores of a group, in whose units they are then. */
DEVICE void backward_bias(const struct backward *b, struct scores *s, const struct group *g,
                          const u32 word[2], u32 rows_are_keys)
{
    soft_bias(s, b->scale, TRANSFORM == ABI_SPARSEGEN ? 1 : LOG2_E, b->a, b->job, g, word,
              rows_are_keys);
}

/* `lse` is in units of the scaled product (lse_in_units). */
DEVICE float probability(const struct backward *b, float dot, float lse)
{
    if (TRANSFORM == ABI_SPARSEGEN)
        return sparsegen_weight(dot * b->unit, lse, b->a->lambda);
    return exp2_of(dot * b->unit - lse);
}

/* d loss / d score of an entry with probability p. */
DEVICE float score_gradient(const struct abi_args *a, float p, float dp, float state)
{
    if (TRANSFORM == ABI_SPARSEGEN)
        return p > 0 ? (dp - state) / (1 - a->lambda) : 0;
    return p * (dp - state);
}

/* ---- dQ: rows are queries ---- */

struct query_rows {
    float lse[2];
    float state[2]; /* dO . O at first; with `rest` the sum of P dP, or the mean */
    float rest[2];
    float sum[2], count[2]; /* the lane's part of `rest` */
};

/* P, and dP after dropout (and X), of the stage's group. */
DEVICE void query_scores(const struct backward *b, const struct query_rows *r, u32 live,
                         struct scores s[2])
{
    const u32 *word = b->stream.now.word;
    backward_scores(b, s, 1, live);
    dropout(&s[1], b->a, dropout_kept(&b->drop, &b->stream.now.group, live));
    backward_bias(b, &s[0], &b->stream.now.group, word, 0);
    soft_scale(&s[1], b->a, b->job, &b->stream.now.group, word, 0);
    UNROLL
    for (u32 k = 0; k < 4 * FRAGMENTS; k++) {
        float *x = &s[0].at[k / 4].x[k % 4];
        *x = sees(word, k / 4, k % 4) ? probability(b, *x, r->lse[k >> 1 & 1]) : 0;
    }
}

/* P to the weights w of dP, which for sparsegen are the support, and dP to w (dP - state). */
DEVICE void add_slopes(struct query_rows *r, struct scores s[2])
{
    UNROLL
    for (u32 k = 0; k < 4 * FRAGMENTS; k++) {
        float *w = &s[0].at[k / 4].x[k % 4], *x = &s[1].at[k / 4].x[k % 4];
        if (TRANSFORM == ABI_SPARSEGEN)
            *w = *w > 0 ? 1 : 0;
        *x = *w * (*x - r->state[k >> 1 & 1]);
        r->sum[k >> 1 & 1] += *x;
        r->count[k >> 1 & 1] += *w;
    }
}

DEVICE void finish_state(struct query_rows *r)
{
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        float sum = quad_sum(r->sum[k]);
        float count = TRANSFORM == ABI_SPARSEGEN ? quad_sum(r->count[k]) : 1;
        r->rest[k] = count > 0 ? sum / count : 0;
    }
}

/* dO . O of the lane's rows, O as it was rounded. */
DEVICE float rounded_state(const struct backward *b, u32 row, u32 there)
{
    struct view o = view_of(&b->a->o, b->job), d_o = view_of(&b->a->d_o, b->job);
    i64 position = there ? job_position(b->job, row) : 0;
    float sum = 0;
    NO_UNROLL
    for (u32 chunk = THREAD % 4; there && chunk < HEAD_CHUNKS; chunk += 4) {
        const u32 *x = (const u32 *)(o.data + position * o.row + 16 * chunk);
        const u32 *y = (const u32 *)(d_o.data + position * d_o.row + 16 * chunk);
        UNROLL
        for (u32 k = 0; k < 4; k++)
            sum += half_low(x[k]) * half_low(y[k]) + half_high(x[k]) * half_high(y[k]);
    }
    return quad_sum(sum);
}

/* A loop, since the text is long; no index picks a register. */
DEVICE void load_query_rows(const struct backward *b, struct query_rows *r)
{
    NO_UNROLL
    for (u32 k = 0; k < 2; k++) {
        u32 row = strip_row(k), there = job_has(b->job, row, b->job->length);
        float lse = there ? lse_of(b->a, b->job)[job_position(b->job, row)] : 0;
        float state = rounded_state(b, row, there);
        r->lse[0] = k ? r->lse[0] : lse_in_units(lse);
        r->lse[1] = lse_in_units(lse);
        r->state[0] = k ? r->state[0] : state;
        r->state[1] = state;
    }
    r->sum[0] = r->sum[1] = r->count[0] = r->count[1] = 0;
}

DEVICE void store_state(const struct backward *b, const struct query_rows *r)
{
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        u32 row = strip_row(k);
        if (THREAD % 4 == 0 && job_has(b->job, row, b->job->exist))
            state_put(b->a, b->job, job_position(b->job, row), r->state[k], r->rest[k]);
    }
}

/* One group: with slopes from a state that is right but for `rest`, and the sums that rest is taken
   from; or a walk for each. */
DEVICE void add_query_group(const struct backward *b, struct query_rows *r, u32 walk,
                            struct sums *slopes, struct sums *weights)
{
    const half_t *columns = stream_operand(&b->stream, 0);
    struct scores s[2]; /* P and dP */
    u32 live = live_fragments(b->stream.now.word);
    if (!live)
        return;
    query_scores(b, r, live, s);
    add_slopes(r, s);
    if (ONE_WALK)
        accumulate_both(slopes, &s[1], weights, &s[0], columns, live);
    else if (walk)
        accumulate(slopes, &s[1], columns, live);
}

/* For ONE_WALK: both sums, and the sum of slopes. */
DEVICE void query_leave(const struct backward *b, const struct query_rows *r,
                        const struct sums *slopes, const struct sums *weights)
{
    NO_UNROLL
    for (u32 k = 0; k < 2; k++) {
        float *to = row_to_leave(b->a, b->job, k), sum = quad_sum(k ? r->sum[1] : r->sum[0]);
        if (!to)
            continue;
        sums_leave(slopes, k, to, 0);
        sums_leave(weights, k, to, 1);
        if (THREAD % 4 == 0)
            put_two(to + PARTIAL_NUMBERS, sum, 0);
    }
}

DEVICE void query_resume(const struct backward *b, struct query_rows *r, struct sums *slopes,
                         struct sums *weights)
{
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        const float *from = row_to_resume(b->a, b->job, k);
        if (!from)
            continue;
        sums_join(slopes, k, from, 0, 1, 1);
        sums_join(weights, k, from, 1, 1, 1);
        r->sum[k] += THREAD % 4 ? 0 : from[PARTIAL_NUMBERS];
    }
}

DEVICE void strip_query_gradient(const struct abi_args *a, const struct job *j)
{
    struct backward b;
    struct query_rows r;
    struct sums d_q, weights;
    struct view to = view_of(&a->d_q, j);
    float by = TRANSFORM == ABI_SPARSEGEN ? a->scale / (1 - a->lambda) : a->scale;
    backward_start(&b, a, j, &a->q, &a->d_o);
    b.drop.rows_are_keys = 0;
    b.stream.first = view_of(&a->k, j);
    b.stream.second = view_of(&a->v, j);
    b.stream.use = USE_FIRST | USE_SECOND;
    load_query_rows(&b, &r);
    sums_clear(&d_q);
    if (ONE_WALK)
        sums_clear(&weights);
    NO_UNROLL
    for (u32 walk = 0; walk < 2 - ONE_WALK; walk++) {
        stream_start(&b.stream, j);
        NO_UNROLL
        while (stream_step(&b.stream))
            add_query_group(&b, &r, walk, &d_q, &weights);
        if (walk)
            continue;
        if (SHARED_ROWS && ONE_WALK && j->item->partial) {
            query_leave(&b, &r, &d_q, &weights);
            return;
        }
        if (SHARED_ROWS && ONE_WALK && a->late)
            query_resume(&b, &r, &d_q, &weights);
        finish_state(&r);
        store_state(&b, &r);
        r.state[0] += r.rest[0];
        r.state[1] += r.rest[1];
    }
    if (ONE_WALK)
        sums_subtract(&d_q, &weights, r.rest[0], r.rest[1]);
    store_strip(&d_q, by, by, b.rows, &to, j);
}

/* ---- dK, dV: rows are keys ---- */

/* S of the stage's group to P; the columns' LSE and state lie with them. */
DEVICE void key_probabilities(const struct backward *b, struct scores *p)
{
    const half_t *columns = stream_operand(&b->stream, 0);
    const u32 *word = b->stream.now.word;
    UNROLL
    for (u32 f = 0; f < FRAGMENTS; f++) {
        UNROLL
        for (u32 u = 0; u < 2; u++) {
            float lse = shared_get(column_numbers(columns, 8 * f + lane_pair() + u));
            UNROLL
            for (u32 x = u; x < 4; x += 2) {
                float *at = &p->at[f].x[x];
                *at = sees(word, f, x) ? probability(b, *at, lse) : 0;
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
                *at = score_gradient(b->a, p->at[f].x[x], *at, state);
            }
        }
    }
}

enum { KEY_PART = 1, VALUE_PART = 2 };

/* One walk for dK, dV or both. */
DEVICE void key_walk(struct backward *b, u32 parts, struct sums *d_k, struct sums *d_v)
{
    stream_start(&b->stream, b->job);
    NO_UNROLL
    while (stream_step(&b->stream)) {
        struct scores s[2]; /* P and dP */
        u32 live = live_fragments(b->stream.now.word);
        if (!live)
            continue;
        const struct group *g = &b->stream.now.group;
        const u32 *word = b->stream.now.word;
        backward_scores(b, s, parts & KEY_PART, live);
        backward_bias(b, &s[0], g, word, 1);
        key_probabilities(b, &s[0]);
        u32 kept = dropout_kept(&b->drop, g, live);
        if (parts & KEY_PART) {
            dropout(&s[1], b->a, kept);
            soft_scale(&s[1], b->a, b->job, g, word, 1);
            key_gradients(b, &s[0], &s[1]);
        }
        soft_scale(&s[0], b->a, b->job, g, word, 1); /* X is in registers for both at once */
        if (parts & KEY_PART)
            accumulate(d_k, &s[1], stream_operand(&b->stream, 0), live);
        if (parts & VALUE_PART) {
            dropout(&s[0], b->a, kept);
            accumulate(d_v, &s[0], stream_operand(&b->stream, 1), live);
        }
    }
}

/* The sums of dK (0) or dV (1) to the tensor, or left to others. */
DEVICE void key_end(struct sums *s, const struct abi_args *a, const struct job *j, u32 sum,
                    float by, half_t *staging, const struct view *to)
{
    if (!SHARED_ROWS || !j->item->partial) {
        store_strip(s, by, by, staging, to, j);
        return;
    }
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

/* V's rows are not needed after dK, K's not after dV. */
DEVICE void strip_key_gradients(const struct abi_args *a, const struct job *j)
{
    struct backward b;
    struct sums d_k, d_v;
    struct view to_k = view_of(&a->d_k, j), to_v = view_of(&a->d_v, j);
    backward_start(&b, a, j, &a->k, &a->v);
    b.drop.rows_are_keys = 1;
    b.stream.first = view_of(&a->q, j);
    b.stream.second = view_of(&a->d_o, j);
    b.stream.use = USE_FIRST | USE_SECOND | USE_NUMBERS;
    b.stream.lse = lse_of(a, j);
    b.stream.state = state_of(a, j);
    sums_clear(&d_k);
    if (BOTH_AT_ONCE)
        sums_clear(&d_v);
    key_walk(&b, BOTH_AT_ONCE ? KEY_PART | VALUE_PART : KEY_PART, &d_k, &d_v);
    if (SHARED_ROWS && a->late) {
        key_resume(&d_k, a, j, 0);
        if (BOTH_AT_ONCE)
            key_resume(&d_v, a, j, 1);
    }
    key_end(&d_k, a, j, 0, a->scale, b.rows_grad, &to_k);
    if (!BOTH_AT_ONCE) {
        sums_clear(&d_v);
        key_walk(&b, VALUE_PART, &d_k, &d_v);
        if (SHARED_ROWS && a->late)
            key_resume(&d_v, a, j, 1);
    }
    key_end(&d_v, a, j, 1, 1, b.rows, &to_v);
}

#endif
