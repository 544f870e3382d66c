/* SPDX-License-Identifier: Apache-2.0 */
/* dQ of a row block of queries, over the forward plan. Delta is dO . O, but for an O rounded to 16 bits
   that is too far off: what is missing is known after the walk, and then times the sum of P K taken from
   dQ. The mean of sparsegen takes a walk of its own. dQ leaves the state in args.delta for dK. */
#include "cuda/tiled/epilogue.h"
#include "cuda/tiled/global_row_backward.h"

struct query_rows {
    float lse[2];
    float delta[2]; /* dO . O at first; with `rest` the sum of P dP, or the mean */
    float delta_correction[2];
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
        float w = query_p(b, s->x[x], r->lse[row]);
        w = sees(seen, f, x) ? w : 0;
        s->x[x] = w;
        dp->x[x] = w * (dp->x[x] - r->delta[row]);
        r->sum[row] += dp->x[x];
        r->count[row] += w;
    }
}

DEVICE void query_entries(const struct backward *b, struct query_rows *r,
                          const struct seen *seen, struct scores s[2])
{
    struct backward here = *b; /* its units are in no register for long */
    backward_scales(&here, b->a);
    UNROLL_BY(FRAGMENTS_UNROLLED)
    for (u32 f = 0; f < FRAGMENTS; f++) {
        struct frag_c first = s[0].at[0], second = s[1].at[0];
        query_fragment(&here, r, seen, f, &first, &second);
        scores_rotate(&s[0], &first);
        scores_rotate(&s[1], &second);
    }
}

DEVICE void finish_delta(struct query_rows *r)
{
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        float sum = quad_sum(r->sum[k]);
        float count = TRANSFORM == ABI_SPARSEGEN ? quad_sum(r->count[k]) : 1;
        r->delta_correction[k] = count > 0 ? sum / count : 0;
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
DEVICE float delta_estimate(const struct backward *b, u32 row, u32 there)
{
    struct view o = view_of(&b->a->o, b->work), d_o = view_of(&b->a->d_o, b->work);
    i64 position = there ? row_position(b->work, row) : 0;
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
        u32 row = block_row(k), there = item_has_row(b->work, row, b->work->length);
        float lse = scaled_lse(there ? lse_of(b->a, b->work)[row_position(b->work, row)] : 0);
        float delta = delta_estimate(b, row, there);
        r->lse[0] = k ? r->lse[0] : lse;
        r->lse[1] = lse;
        r->delta[0] = k ? r->delta[0] : delta;
        r->delta[1] = delta;
    }
    r->sum[0] = r->sum[1] = r->count[0] = r->count[1] = r->delta_correction[0] =
        r->delta_correction[1] = 0;
}

/* To the tensor; from now on it has the rest. */
DEVICE void store_delta(const struct backward *b, struct query_rows *r)
{
    const struct work_item *work = b->work;
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        u32 row = block_row(k);
        if (quad_lane() == 0 && item_has_row(work, row, work->exist))
            delta_put(b->a, work, row_position(work, row), r->delta[k], r->delta_correction[k]);
        r->delta[k] += r->delta_correction[k];
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
DEVICE void query_add(const struct backward *b, struct query_rows *r, u32 pass, u32 live,
                      const struct seen *seen, struct sums *d_q, struct sums *p_k)
{
    const half_t *columns = stream_operand(&b->stream, 0);
    struct scores s[2]; /* weights and dP */
    query_scores(b, s, live);
    dropout(&s[1], b->a, dropout_kept(&b->drop, &b->stream.now, live));
    query_entries(b, r, seen, s);
    if (ONE_PASS)
        accumulate_both(d_q, &s[1], p_k, &s[0], columns, live);
    else if (pass)
        accumulate(d_q, &s[1], columns, live);
}

/* The text is there twice, as forward. */
DEVICE void query_column_tile(const struct backward *b, struct query_rows *r, u32 pass,
                              struct sums *d_q, struct sums *p_k)
{
    const struct words words = stage_words(&b->stream);
    if (ALL_APART && words_are_whole(&words)) {
        query_add(b, r, pass, ALL_LIVE, 0, d_q, p_k);
        return;
    }
    const u32 live = live_slots(&words);
    if (!live)
        return;
    const struct seen seen = seen_of(&words);
    query_add(b, r, pass, live, &seen, d_q, p_k);
}

/* Is the item's row another's to finish? It leaves both sums (ONE_PASS), ... */
DEVICE u32 query_is_split(const struct work_item *work)
{
    return SHARED_ROWS && ONE_PASS && work->item->split;
}

/* ... and the lane's rows' sums of slopes. */
DEVICE void query_store_partial(const struct backward *b, const struct query_rows *r)
{
    NO_UNROLL
    for (u32 k = 0; k < 2; k++) {
        float *to = partial_to_store(b->a, b->work, k),
              sum = quad_sum(k ? r->sum[1] : r->sum[0]);
        if (to && quad_lane() == 0)
            put_two(to + PARTIAL_NUMBERS, sum, 0);
    }
}

DEVICE void query_merge_partial(const struct backward *b, struct query_rows *r)
{
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        const float *from = partial_to_merge(b->a, b->work, k);
        if (from)
            r->sum[k] += quad_lane() ? 0 : from[PARTIAL_NUMBERS];
    }
}

/* To the tensor; or both sums to others, one after the other. */
DEVICE void query_epilogue(const struct backward *b, const struct query_rows *r,
                           struct sums *d_q, const struct sums *p_k)
{
    const struct work_item *work = b->work;
    const float by = ds_scale(b->a);
    struct view to = view_of(&b->a->d_q, work);
    struct epilogue e = {b->a, work, to, by, 0, ONE_PASS};
    if (ONE_PASS && !query_is_split(work))
        sums_subtract(d_q, p_k, r->delta_correction[0], r->delta_correction[1]);
    if (!SHARED_ROWS)
        store_row_block(d_q, by, by, b->rows, &to, work);
    NO_UNROLL
    for (; SHARED_ROWS && e.sum <= query_is_split(work); e.sum++) {
        epilogue_row_block(&e, d_q, r->delta_correction, b->rows);
        if (ONE_PASS)
            *d_q = *p_k;
    }
}

DEVICE void row_block_dq(const struct abi_args *a, struct work_item *work)
{
    struct backward b;
    struct query_rows r;
    struct sums d_q, p_k;
    backward_start(&b, a, work, &a->q, &a->d_o);
    b.drop.rows_are_keys = 0;
    b.stream.a = a;
    b.stream.first = &a->k;
    b.stream.second = &a->v;
    b.stream.use = USE_FIRST | USE_SECOND | USE_PADDING;
    load_query_rows(&b, &r);
    sums_clear(&d_q);
    if (ONE_PASS)
        sums_clear(&p_k);
    NO_UNROLL
    for (u32 pass = 0; pass < 2 - ONE_PASS; pass++) {
        stream_start(&b.stream, work);
        NO_UNROLL
        while (stream_step(&b.stream))
            query_column_tile(&b, &r, pass, &d_q, &p_k);
        work_item_restore(work, a, b.stream.buffer);
        if (pass)
            continue;
        if (query_is_split(work)) {
            query_store_partial(&b, &r);
            continue;
        }
        if (SHARED_ROWS && ONE_PASS && a->merge)
            query_merge_partial(&b, &r);
        finish_delta(&r);
        store_delta(&b, &r);
    }
    query_epilogue(&b, &r, &d_q, &p_k);
}

ENTRY_OF(attention_dq, THREADS, QUERY_BLOCKS)(ARGS a)
{
    NO_UNROLL
    for (u32 at = BLOCK; at < work_item_count(&a, &a.forward); at += BLOCKS) {
        struct work_item work = work_item_at(&a, &a.forward, at);
        if (ROW_PASS && work.global_row)
            global_row_dq(&a, &work);
        else
            row_block_dq(&a, &work);
        at = work.index; /* the same; no register held it */
    }
}
