/* SPDX-License-Identifier: Apache-2.0 */
/* dQ of a row block of queries, over the forward plan. Delta is dO . O, but for an O rounded to 16 bits
   that is too far off: what is missing is known after the walk, and then times the sum of P K taken from
   dQ. The mean of sparsegen takes a walk of its own. dQ leaves the state in args.delta for dK. */
#include "cuda/tiled/epilogue.h"
#include "cuda/tiled/global_row_backward.h"

struct query_rows {
    float lse[2];
    float state[2]; /* dO . O at first; with `rest` the sum of P dP, or the mean */
    float rest[2];
    float sum[2], count[2]; /* the lane's part of `rest` */
};

/* S and dP, after dropout, of the lane's entries of fragment f of the stage's group to weights w of dP and to
   w (dP - state). */
DEVICE void query_fragment(const struct backward *b, struct query_rows *r,
                           const struct seen *seen, u32 f, struct frag_c *s, struct frag_c *dp)
{
    struct frag_c bias = {{0, 0, 0, 0}};
    backward_bias(b, seen, f, 0, s, &bias);
    UNROLL
    for (u32 x = 0; SCALE_PROBS && x < 4; x++)
        dp->x[x] *= bias.x[x];
    UNROLL
    for (u32 x = 0; x < 4; x++) {
        const u32 row = x >> 1;
        float w = query_weight(b, s->x[x], r->lse[row]);
        w = sees(seen, f, x) ? w : 0;
        s->x[x] = w;
        dp->x[x] = w * (dp->x[x] - r->state[row]);
        r->sum[row] += dp->x[x];
        r->count[row] += w;
    }
}

DEVICE void query_entries(const struct backward *b, struct query_rows *r,
                          const struct seen *seen, struct scores s[2])
{
    struct backward here = *b; /* its units are in no register for long */
    backward_units(&here, b->a);
    UNROLL_BY(ENTRIES_ABREAST)
    for (u32 f = 0; f < FRAGMENTS; f++) {
        struct frag_c first = s[0].at[0], second = s[1].at[0];
        query_fragment(&here, r, seen, f, &first, &second);
        scores_turn(&s[0], &first);
        scores_turn(&s[1], &second);
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

/* Of an O that f16 could not hold, which delta is first taken from: any number near it will do, infinity
   would not. */
DEVICE float output_finite(float o)
{
    const float most = 65504;
    if (DTYPE != ABI_F16)
        return o;
    return o > most ? most : o < -most ? -most : o;
}

/* dO . O of the lane's rows, O as it was rounded. */
DEVICE float rounded_state(const struct backward *b, u32 row, u32 there)
{
    struct view o = view_of(&b->a->o, b->job), d_o = view_of(&b->a->d_o, b->job);
    i64 position = there ? job_position(b->job, row) : 0;
    float sum = 0;
    NO_UNROLL
    for (u32 chunk = quad_lane(); there && chunk < HEAD_CHUNKS; chunk += 4) {
        const u32 *x = (const u32 *)(o.data + position * o.row + 16 * chunk);
        const u32 *y = (const u32 *)(d_o.data + position * d_o.row + 16 * chunk);
        UNROLL
        for (u32 k = 0; k < 4; k++)
            sum += output_finite(half_low(x[k])) * half_low(y[k]) +
                   output_finite(half_high(x[k])) * half_high(y[k]);
    }
    return quad_sum(sum);
}

/* A loop, since the text is long; no index picks a register. */
DEVICE void load_query_rows(const struct backward *b, struct query_rows *r)
{
    NO_UNROLL
    for (u32 k = 0; k < 2; k++) {
        u32 row = block_row(k), there = job_has(b->job, row, b->job->length);
        float lse = lse_in_units(there ? lse_of(b->a, b->job)[job_position(b->job, row)] : 0);
        float state = rounded_state(b, row, there);
        r->lse[0] = k ? r->lse[0] : lse;
        r->lse[1] = lse;
        r->state[0] = k ? r->state[0] : state;
        r->state[1] = state;
    }
    r->sum[0] = r->sum[1] = r->count[0] = r->count[1] = r->rest[0] = r->rest[1] = 0;
}

/* To the tensor; from now on it has the rest. */
DEVICE void store_state(const struct backward *b, struct query_rows *r)
{
    const struct job *j = b->job;
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        u32 row = block_row(k);
        if (quad_lane() == 0 && job_has(j, row, j->exist))
            state_put(b->a, j, job_position(j, row), r->state[k], r->rest[k]);
        r->state[k] += r->rest[k];
    }
}

/* S and dP: one after the other takes fewer registers, but not beside a bias and large heads. */
DEVICE void query_scores(const struct backward *b, struct scores s[2], u32 live)
{
    const u32 at = THREAD / 32 * 16 * PITCH;
    if (BIAS || STEPS > 6) {
        backward_scores(b, s, 1, live);
        return;
    }
    scores_of_shared(&s[0], b->rows + at, 0, stream_operand(&b->stream, 0), live);
    scores_of_shared(&s[1], b->rows_grad + at, 0, stream_operand(&b->stream, 1), live);
}

/* A group, of which `live` slots are seen: with slopes from a state that is right but for `rest`, and the sums
   that rest is taken from; or a walk for each. */
DEVICE void query_add(const struct backward *b, struct query_rows *r, u32 walk, u32 live,
                      const struct seen *seen, struct sums *slopes, struct sums *weights)
{
    const half_t *columns = stream_operand(&b->stream, 0);
    struct scores s[2]; /* weights and dP */
    query_scores(b, s, live);
    dropout(&s[1], b->a, dropout_kept(&b->drop, &b->stream.now, live));
    query_entries(b, r, seen, s);
    if (ONE_WALK)
        accumulate_both(slopes, &s[1], weights, &s[0], columns, live);
    else if (walk)
        accumulate(slopes, &s[1], columns, live);
}

/* The text is there twice, as forward. */
DEVICE void add_query_group(const struct backward *b, struct query_rows *r, u32 walk,
                            struct sums *slopes, struct sums *weights)
{
    const struct words words = stage_words(&b->stream);
    if (ALL_APART && words_are_whole(&words)) {
        query_add(b, r, walk, ALL_LIVE, 0, slopes, weights);
        return;
    }
    const u32 live = live_slots(&words);
    if (!live)
        return;
    const struct seen seen = seen_of(&words);
    query_add(b, r, walk, live, &seen, slopes, weights);
}

/* Is the item's row another's to finish? It leaves both sums (ONE_WALK), ... */
DEVICE u32 query_leaves(const struct job *j)
{
    return SHARED_ROWS && ONE_WALK && j->item->split;
}

/* ... and the lane's rows' sums of slopes. */
DEVICE void query_leave(const struct backward *b, const struct query_rows *r)
{
    NO_UNROLL
    for (u32 k = 0; k < 2; k++) {
        float *to = row_to_leave(b->a, b->job, k), sum = quad_sum(k ? r->sum[1] : r->sum[0]);
        if (to && quad_lane() == 0)
            put_two(to + PARTIAL_NUMBERS, sum, 0);
    }
}

DEVICE void query_resume(const struct backward *b, struct query_rows *r)
{
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        const float *from = row_to_resume(b->a, b->job, k);
        if (from)
            r->sum[k] += quad_lane() ? 0 : from[PARTIAL_NUMBERS];
    }
}

/* To the tensor; or both sums to others, one after the other. */
DEVICE void query_end(const struct backward *b, const struct query_rows *r, struct sums *slopes,
                      const struct sums *weights)
{
    const struct job *j = b->job;
    const float by = slope_scale(b->a);
    struct view to = view_of(&b->a->d_q, j);
    struct row_block_end e = {b->a, j, to, by, 0, ONE_WALK};
    if (ONE_WALK && !query_leaves(j))
        sums_subtract(slopes, weights, r->rest[0], r->rest[1]);
    if (!SHARED_ROWS)
        store_row_block(slopes, by, by, b->rows, &to, j);
    NO_UNROLL
    for (; SHARED_ROWS && e.sum <= query_leaves(j); e.sum++) {
        end_row_block(&e, slopes, r->rest, b->rows);
        if (ONE_WALK)
            *slopes = *weights;
    }
}

DEVICE void row_block_query_gradient(const struct abi_args *a, struct job *j)
{
    struct backward b;
    struct query_rows r;
    struct sums d_q, weights;
    backward_start(&b, a, j, &a->q, &a->d_o);
    b.drop.rows_are_keys = 0;
    b.stream.a = a;
    b.stream.first = &a->k;
    b.stream.second = &a->v;
    b.stream.use = USE_FIRST | USE_SECOND | USE_PADDING;
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
        job_recall(j, a, b.stream.buffer);
        if (walk)
            continue;
        if (query_leaves(j)) {
            query_leave(&b, &r);
            continue;
        }
        if (SHARED_ROWS && ONE_WALK && a->merge)
            query_resume(&b, &r);
        finish_state(&r);
        store_state(&b, &r);
    }
    query_end(&b, &r, &d_q, &weights);
}

ENTRY_OF(attention_dq, THREADS, QUERY_BLOCKS)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < job_count(&a, &a.forward); at += BLOCKS) {
        struct job j = job_at(&a, &a.forward, at);
        if (ROW_PASS && j.single)
            row_query_gradient(&a, &j);
        else
            row_block_query_gradient(&a, &j);
        at = j.index; /* the same; no register held it */
    }
}
