/* SPDX-License-Identifier: Apache-2.0 */
/* The row pass: one row that sees very many columns, by the whole block, in float. A quad takes a few
   columns at a time, each of its lanes every fourth 16 bytes of them; quads keep states of
   their own, which are put together in a fixed order at the end. The row's own operands and the
   sums of all quads lie in shared memory. */
#ifndef MASKC_CUDA_STREAM_ROWS_H
#define MASKC_CUDA_STREAM_ROWS_H
#include "cuda/stream_backward.h"

enum {
    QUADS = THREADS / 4,
    LANE_CHUNKS = (HEAD_CHUNKS + 3) / 4,             /* of 8 positions, of a lane */
    ABREAST = LANE_CHUNKS > 4 ? 1 : LANE_CHUNKS > 2 ? 2 : 4, /* columns that a quad takes at once */
    ROW_PITCH = HEAD_DIM + 4,                        /* floats */
    ROW_SUMS = 2 * ROW_PITCH,                        /* after the two operands */
    ROW_NUMBERS = ROW_SUMS + QUADS * ROW_PITCH,      /* one for each quad */
    ROW_FLOATS = ROW_NUMBERS + QUADS,
};

typedef char row_pass_fits_forward[FORWARD_SHARED >= 4 * ROW_FLOATS ? 1 : -1];

/* A lane's part of a column, or of a sum over columns. */
struct part {
    float at[LANE_CHUNKS][8];
};

struct column_part {
    struct u32x4 at[LANE_CHUNKS];
};

DEVICE u32 quad(void)
{
    return THREAD / 4;
}

/* Chunk k of the lane. */
DEVICE u32 lane_chunk(u32 k)
{
    return 4 * k + THREAD % 4;
}

DEVICE void part_clear(struct part *p)
{
    UNROLL
    for (u32 k = 0; k < 8 * LANE_CHUNKS; k++)
        p->at[k / 8][k % 8] = 0;
}

DEVICE void part_scale(struct part *p, float by)
{
    UNROLL
    for (u32 k = 0; k < 8 * LANE_CHUNKS; k++)
        p->at[k / 8][k % 8] *= by;
}

DEVICE void load_part(struct column_part *ret, const struct view *v, u32 column, u32 there)
{
    UNROLL
    for (u32 k = 0; k < LANE_CHUNKS; k++) {
        struct u32x4 zero = {0, 0, 0, 0};
        u32 chunk = lane_chunk(k);
        ret->at[k] = zero;
        if (there && chunk < HEAD_CHUNKS)
            ret->at[k] = *(const struct u32x4 *)(v->data + column * v->row + 16 * chunk);
    }
}

DEVICE void unpack(float ret[8], const struct u32x4 *x)
{
    ret[0] = half_low(x->x);
    ret[1] = half_high(x->x);
    ret[2] = half_low(x->y);
    ret[3] = half_high(x->y);
    ret[4] = half_low(x->z);
    ret[5] = half_high(x->z);
    ret[6] = half_low(x->w);
    ret[7] = half_high(x->w);
}

/* operand . column, the same in the quad. */
DEVICE float part_dot(const float *operand, const struct column_part *column)
{
    float sum = 0;
    UNROLL
    for (u32 k = 0; k < LANE_CHUNKS; k++) {
        float x[8];
        if (lane_chunk(k) >= HEAD_CHUNKS)
            continue;
        unpack(x, &column->at[k]);
        struct f4 a = shared_get4(operand + 8 * lane_chunk(k));
        struct f4 b = shared_get4(operand + 8 * lane_chunk(k) + 4);
        sum += a.x * x[0] + a.y * x[1] + a.z * x[2] + a.w * x[3];
        sum += b.x * x[4] + b.y * x[5] + b.z * x[6] + b.w * x[7];
    }
    return quad_sum(sum);
}

DEVICE void part_add(struct part *sum, const struct column_part *column, float weight)
{
    UNROLL
    for (u32 k = 0; k < LANE_CHUNKS; k++) {
        float x[8];
        unpack(x, &column->at[k]);
        UNROLL
        for (u32 e = 0; e < 8; e++)
            sum->at[k][e] += weight * x[e];
    }
}

/* ---- what quads do together ---- */

/* Sum (or maximum) of the quads' values over the block, in a fixed order. */
DEVICE float block_reduce(float x, u32 maximum)
{
    float *numbers = SHARED() + ROW_NUMBERS;
    SYNC();
    if (THREAD % 4 == 0)
        shared_put(numbers + quad(), x);
    SYNC();
    x = shared_get(numbers);
    NO_UNROLL
    for (u32 r = 1; r < QUADS; r++) {
        float y = shared_get(numbers + r);
        x = maximum ? larger(x, y) : x + y;
    }
    return x;
}

/* Writes the quads' sums, each times the thread's factor, to the item's row. */
DEVICE void store_row(struct part *p, float by, const struct view *to, const struct job *j)
{
    float *sums = SHARED() + ROW_SUMS;
    SYNC();
    UNROLL
    for (u32 k = 0; k < 8 * LANE_CHUNKS; k++) {
        u32 d = 8 * lane_chunk(k / 8) + k % 8;
        if (d < HEAD_DIM)
            shared_put(sums + quad() * ROW_PITCH + d, p->at[k / 8][k % 8] * by);
    }
    SYNC();
    NO_UNROLL
    for (u32 d = 2 * THREAD; d < HEAD_DIM; d += 2 * THREADS) {
        float low = 0, high = 0;
        NO_UNROLL
        for (u32 r = 0; r < QUADS; r++) {
            low += shared_get(sums + r * ROW_PITCH + d);
            high += shared_get(sums + r * ROW_PITCH + d + 1);
        }
        if (j->item->row0 < j->exist)
            *(u32 *)(to->data + j->item->row0 * to->row + 2 * d) = half_pack(low, high);
    }
}

/* The row of a tensor to shared memory, as float; a barrier comes after it. */
DEVICE void load_operand(float *to, const struct view *v, const struct job *j)
{
    NO_UNROLL
    for (u32 d = 2 * THREAD; d < HEAD_DIM; d += 2 * THREADS) {
        u32 x = 0;
        if (j->item->row0 < j->length)
            x = *(const u32 *)(v->data + j->item->row0 * v->row + 2 * d);
        shared_put(to + d, half_low(x));
        shared_put(to + d + 1, half_high(x));
    }
}

/* ---- the walk ---- */

struct row_walk {
    const struct abi_args *a;
    const struct job *job;
    struct view first, second; /* columns of these */
    u32 element, column;       /* range, and where in it the next step begins; 0: at its start */
    u32 stored;                /* score columns of the ranges before */
    u32 rows_are_keys;
    /* the step that the quad is at */
    u32 at[ABREAST], there[ABREAST], place[ABREAST]; /* column; score column in the scratch */
};

DEVICE void row_restart(struct row_walk *w)
{
    w->element = w->column = w->stored = 0;
}

DEVICE u32 row_step(struct row_walk *w)
{
    const struct abi_piece *p = w->job->plan->pieces + w->job->item->piece;
    u32 count = w->job->item->row0 < w->job->length ? p->count : 0;
    for (; w->element < count; w->element++, w->column = 0) {
        struct abi_range r = w->job->plan->ranges[p->first + w->element];
        u32 end = smaller(r.end, w->job->length), begin = w->column ? w->column : r.begin;
        if (begin < end) {
            UNROLL
            for (u32 k = 0; k < ABREAST; k++) {
                w->at[k] = begin + k * QUADS + quad();
                w->there[k] = w->at[k] < end;
                w->place[k] = w->stored + (w->at[k] - r.begin);
            }
            w->column = begin + ABREAST * QUADS;
            return 1;
        }
        if (r.begin < end)
            w->stored += end - r.begin;
    }
    return 0;
}

DEVICE void row_start(struct row_walk *w, const struct abi_args *a, const struct job *j,
                      const struct abi_tensor *first, const struct abi_tensor *second)
{
    w->a = a;
    w->job = j;
    w->first = view_of(first, j);
    w->second = view_of(second, j);
    row_restart(w);
}

/* 0 or the factor of the entry at place k under dropout. */
DEVICE float row_kept(const struct row_walk *w, u32 k)
{
    u32 row = w->job->item->row0, column = w->at[k];
    if (!DROPOUT || !w->a->keep_below)
        return 1;
    u32 i = w->rows_are_keys ? column : row, j = w->rows_are_keys ? row : column;
    u32 draw = dropout_draw(w->a->seed, w->job->b, w->job->h, i, j);
    return draw >= w->a->keep_below ? w->a->keep_scale : 0;
}

/* ---- forward ---- */

DEVICE void row_lse(const struct row_walk *w, float lse)
{
    if (THREAD == 0 && w->job->item->row0 < w->job->exist)
        ((float *)lse_of(w->a, w->job))[w->job->item->row0] = lse;
}

/* Scores of the step, to base 2 for softmax, -inf where there is none; `second` is loaded too. */
DEVICE void row_scores(const struct row_walk *w, float scale, float s[ABREAST],
                       struct column_part *second)
{
    struct column_part first[ABREAST];
    UNROLL
    for (u32 k = 0; k < ABREAST; k++) {
        load_part(&first[k], &w->first, w->at[k], w->there[k]);
        if (second)
            load_part(&second[k], &w->second, w->at[k], w->there[k]);
    }
    UNROLL
    for (u32 k = 0; k < ABREAST; k++) {
        float dot = part_dot(SHARED(), &first[k]);
        s[k] = w->there[k] ? dot * scale : NEGATIVE_INFINITY;
    }
}

DEVICE void row_softmax(struct row_walk *w, struct part *o)
{
    float top = NEGATIVE_INFINITY, sum = 0;
    struct view to = view_of(&w->a->o, w->job);
    while (row_step(w)) {
        float s[ABREAST], higher = top;
        struct column_part values[ABREAST];
        row_scores(w, w->a->scale * LOG2_E, s, values);
        UNROLL
        for (u32 k = 0; k < ABREAST; k++)
            higher = larger(higher, s[k]);
        float origin = softmax_origin(higher, 1), shrink = exp2_of(top - origin);
        top = higher;
        sum *= shrink;
        part_scale(o, shrink);
        UNROLL
        for (u32 k = 0; k < ABREAST; k++) {
            float p = exp2_of(s[k] - origin);
            sum += p;
            part_add(o, &values[k], p * row_kept(w, k));
        }
    }
    float all = block_reduce(top, 1), weight = exp2_of(top - softmax_origin(all, 1));
    sum = block_reduce(sum * weight, 0);
    store_row(o, sum > 0 ? weight / sum : 0, &to, w->job);
    row_lse(w, sum > 0 ? (all + log2_of(sum)) * LN_2 : NEGATIVE_INFINITY);
}

/* The quads keep their scores in the scratch, and each finds its own again. */
DEVICE float row_tau(struct row_walk *w, const float *scratch, float top)
{
    float room = 1 - w->a->lambda, threshold = -room, before = -1;
    u32 going = 1;
    while (going) { /* all threads have the same numbers */
        float sum = 0, count = 0;
        row_restart(w);
        while (row_step(w)) {
            UNROLL
            for (u32 k = 0; k < ABREAST; k++) {
                float z = w->there[k] ? scratch[w->place[k]] - top : NEGATIVE_INFINITY;
                sum += z > threshold ? z : 0;
                count += z > threshold ? 1 : 0;
            }
        }
        sum = block_reduce(sum, 0);
        count = block_reduce(count, 0);
        going = count > 0 && count != before;
        if (going)
            threshold = larger(threshold, (sum - room) / count);
        before = count;
    }
    return top == NEGATIVE_INFINITY ? top : top + threshold;
}

DEVICE void row_sparsegen(struct row_walk *w, struct part *o)
{
    float top = NEGATIVE_INFINITY, *scratch = scratch_of(w->a), s[ABREAST];
    struct view to = view_of(&w->a->o, w->job);
    while (row_step(w)) {
        row_scores(w, w->a->scale, s, 0);
        UNROLL
        for (u32 k = 0; k < ABREAST; k++) {
            top = larger(top, s[k]);
            if (w->there[k] && THREAD % 4 == 0)
                scratch[w->place[k]] = s[k];
        }
    }
    SYNC_WARP(); /* a quad reads what its first lane wrote */
    float tau = row_tau(w, scratch, block_reduce(top, 1));
    row_restart(w);
    while (row_step(w)) {
        UNROLL
        for (u32 k = 0; k < ABREAST; k++) {
            struct column_part value;
            load_part(&value, &w->second, w->at[k], w->there[k]);
            float score = w->there[k] ? scratch[w->place[k]] : NEGATIVE_INFINITY;
            part_add(o, &value, sparsegen_weight(score, tau, w->a->lambda) * row_kept(w, k));
        }
    }
    store_row(o, 1, &to, w->job);
    row_lse(w, tau);
}

DEVICE void row_forward(const struct abi_args *a, const struct job *j)
{
    struct row_walk w;
    struct part o;
    struct view q = view_of(&a->q, j);
    row_start(&w, a, j, &a->k, &a->v);
    w.rows_are_keys = 0;
    part_clear(&o);
    SYNC();
    load_operand(SHARED(), &q, j);
    SYNC();
    if (TRANSFORM == ABI_SPARSEGEN)
        row_sparsegen(&w, &o);
    else
        row_softmax(&w, &o);
}

/* ---- backward ---- */

/* The scale of scores, as struct backward has it. */
DEVICE struct backward row_backward(const struct abi_args *a)
{
    struct backward b;
    b.a = a;
    b.scale = TRANSFORM == ABI_SPARSEGEN ? a->scale : a->scale * LOG2_E;
    return b;
}

/* Entry k of a step: P, and dP after dropout. */
struct entry {
    float p, dp, kept;
};

DEVICE struct entry row_entry(const struct row_walk *w, const struct backward *b, u32 k, float lse,
                              const struct column_part *first, const struct column_part *second)
{
    struct entry e;
    float dot = part_dot(SHARED(), first), grad = part_dot(SHARED() + ROW_PITCH, second);
    e.kept = row_kept(w, k);
    e.p = w->there[k] ? probability(b, dot, lse) : 0;
    e.dp = grad * e.kept;
    return e;
}

DEVICE void row_load(const struct row_walk *w, struct column_part *first,
                     struct column_part *second)
{
    UNROLL
    for (u32 k = 0; k < ABREAST; k++) {
        load_part(&first[k], &w->first, w->at[k], w->there[k]);
        load_part(&second[k], &w->second, w->at[k], w->there[k]);
    }
}

DEVICE float row_state(struct row_walk *w, const struct backward *b, float lse)
{
    float sum = 0, count = 0;
    while (row_step(w)) {
        struct column_part first[ABREAST], second[ABREAST];
        row_load(w, first, second);
        UNROLL
        for (u32 k = 0; k < ABREAST; k++) {
            struct entry e = row_entry(w, b, k, lse, &first[k], &second[k]);
            float weight = TRANSFORM == ABI_SPARSEGEN ? e.p > 0 : e.p;
            sum += weight * e.dp;
            count += weight;
        }
    }
    sum = block_reduce(sum, 0);
    count = TRANSFORM == ABI_SPARSEGEN ? block_reduce(count, 0) : 1;
    return count > 0 ? sum / count : 0;
}

DEVICE void load_operands(const struct abi_args *a, const struct job *j,
                          const struct abi_tensor *row, const struct abi_tensor *row_grad)
{
    struct view first = view_of(row, j), second = view_of(row_grad, j);
    SYNC();
    load_operand(SHARED(), &first, j);
    load_operand(SHARED() + ROW_PITCH, &second, j);
    SYNC();
}

DEVICE void row_query_gradient(const struct abi_args *a, const struct job *j)
{
    struct row_walk w;
    struct part d_q;
    struct backward b = row_backward(a);
    struct view to = view_of(&a->d_q, j);
    u32 row = j->item->row0;
    row_start(&w, a, j, &a->k, &a->v);
    w.rows_are_keys = 0;
    part_clear(&d_q);
    load_operands(a, j, &a->q, &a->d_o);
    float lse = row < j->length ? lse_in_units(lse_of(a, j)[row]) : 0;
    float state = row_state(&w, &b, lse);
    row_restart(&w);
    while (row_step(&w)) {
        struct column_part first[ABREAST], second[ABREAST];
        row_load(&w, first, second);
        UNROLL
        for (u32 k = 0; k < ABREAST; k++) {
            struct entry e = row_entry(&w, &b, k, lse, &first[k], &second[k]);
            part_add(&d_q, &first[k], score_gradient(a, e.p, e.dp, state));
        }
    }
    store_row(&d_q, a->scale, &to, j);
    if (THREAD == 0 && row < j->exist)
        state_of(a, j)[row] = state;
}

DEVICE void row_key_gradients(const struct abi_args *a, const struct job *j)
{
    struct row_walk w;
    struct part d_k, d_v;
    struct backward b = row_backward(a);
    struct view to_k = view_of(&a->d_k, j), to_v = view_of(&a->d_v, j);
    row_start(&w, a, j, &a->q, &a->d_o);
    w.rows_are_keys = 1;
    part_clear(&d_k);
    part_clear(&d_v);
    load_operands(a, j, &a->k, &a->v);
    while (row_step(&w)) {
        struct column_part first[ABREAST], second[ABREAST];
        row_load(&w, first, second);
        UNROLL
        for (u32 k = 0; k < ABREAST; k++) {
            float lse = w.there[k] ? lse_in_units(lse_of(a, j)[w.at[k]]) : 0;
            float state = w.there[k] ? state_of(a, j)[w.at[k]] : 0;
            struct entry e = row_entry(&w, &b, k, lse, &first[k], &second[k]);
            part_add(&d_k, &first[k], score_gradient(a, e.p, e.dp, state));
            part_add(&d_v, &second[k], e.p * e.kept);
        }
    }
    store_row(&d_k, a->scale, &to_k, j);
    store_row(&d_v, 1, &to_v, j);
}

#endif
