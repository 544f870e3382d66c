/* SPDX-License-Identifier: Apache-2.0 */
/* dQ of a row block of queries, over the forward plan:

       for each column tile of 32 keys, and before the first:
           stream_next
           load_query_rows           before the first: LSE, delta = rowsum(dO o O); O is in the second tile's buffer (or Q's)
           query_s_dp                S = Q K^T, dP = dO V^T
           dropout                   on dP
           query_ds                  P = 2^(S - LSE), dS = P (dP - delta); row sums of dS
           accumulate                dQ += dS K, PK += P K
       query_epilogue                dQ -= correction PK

   Softmax backward needs delta_i = sum_j P_ij dP_ij. rowsum(dO o O) estimates it, but O is rounded to 16 bits.
   The row sum of P (dP - estimate) is the correction, known after the last tile. Sparsegen (and D > 128) takes
   two passes over the columns: the first for delta, which for sparsegen is the mean of dP over the support; the
   second for dQ. dQ stores delta in args.delta for dK. */
#include "cuda/tiled/epilogue.h"
#include "cuda/tiled/global_row_backward.h"

struct query_rows {
    float lse[2];
    float delta[2]; /* the estimate; from store_delta on delta itself */
    float delta_correction[2];
    float sum[2], count[2]; /* of dS; entries of the support (sparsegen); the lane's part */
};

/* S and dP, after dropout, of the lane's entries of fragment f to P and dS (see query_p). */
DEVICE void query_fragment_ds(const struct backward *b, struct query_rows *r,
                              const struct seen *seen, u32 f, struct frag_c *s,
                              struct frag_c *dp)
{
    struct frag_c bias = {{0, 0, 0, 0}};
    backward_bias(b, seen, f, 0, s, &bias);
    UNROLL
    for (u32 x = 0; SCALE_PROBS && x < 4; x++)
        dp->x[x] *= bias.x[x];
    UNROLL
    for (u32 x = 0; x < 4; x++) {
        const u32 row = x >> 1;
        float p = query_p(b, s->x[x], r->lse[row]);
        p = sees(seen, f, x) ? p : 0;
        s->x[x] = p;
        dp->x[x] = p * (dp->x[x] - r->delta[row]);
        r->sum[row] += dp->x[x];
        r->count[row] += p;
    }
}

/* S and dP of a column tile to P and dS. */
DEVICE void query_ds(const struct backward *b, struct query_rows *r, const struct seen *seen,
                     struct scores s[2])
{
    struct backward here = *b; /* scales are computed again, to save registers */
    backward_scales(&here, b->a);
    UNROLL_BY(FRAGMENTS_UNROLLED)
    for (u32 f = 0; f < FRAGMENTS; f++) {
        struct frag_c first = s[0].at[0], second = s[1].at[0];
        query_fragment_ds(&here, r, seen, f, &first, &second);
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

/* O where f16 overflowed: an estimate of delta may be off, but must be finite. */
DEVICE float output_finite(float o)
{
    const float most = 65504;
    if (DTYPE != ABI_F16)
        return o;
    return o > most ? most : o < -most ? -most : o;
}

/* Where O is copied to: the second column tile, if it is as large; else to where Q comes afterwards. */
enum {
    OUTPUTS_APART = BACKWARD_BUFFERS == 2 && BLOCK_ROWS <= 2 * TILE_COLS,
    OUTPUT_STEPS = ALL_APART && STEPS <= 4 ? OUTPUTS_UNROLLED : 1, /* unrolled */
};

DEVICE half_t *outputs_of(const struct backward *b)
{
    return OUTPUTS_APART ? b->stream.buffer + 2 * OPERAND : b->rows;
}

/* Starts the copies of rows of O, or of Q to where O was. */
DEVICE void copy_rows_to(half_t *to, const struct abi_tensor *t, const struct backward *b)
{
    const struct view v = view_of(t, b->work);
    copy_row_block(to, &v, b->work, warp_rows(b->work, b->work->length));
    copy_async_commit();
}

DEVICE float product_of_outputs(u32 o, u32 d_o)
{
    return output_finite(half_low(o)) * half_low(d_o) +
           output_finite(half_high(o)) * half_high(d_o);
}

/* rowsum(dO o O) of the lane's rows, O as it was rounded. */
DEVICE void delta_estimates(const struct backward *b, float delta[2])
{
    const u32 at = THREAD / 32 * 16 * PITCH;
    float sum[2] = {0, 0};
    UNROLL_BY(OUTPUT_STEPS)
    for (u32 step = 0; step < STEPS; step++) {
        struct frag_a o, d_o;
        load_rows(&o, outputs_of(b) + at, step);
        load_rows(&d_o, b->rows_grad + at, step);
        UNROLL
        for (u32 k = 0; k < 4; k++)
            sum[k % 2] += product_of_outputs(o.x[k], d_o.x[k]);
    }
    delta[0] = quad_sum(sum[0]);
    delta[1] = quad_sum(sum[1]);
}

/* LSE as it is stored, asked for long before it is used. */
DEVICE void read_query_lse(const struct backward *b, struct query_rows *r, u32 rows)
{
    const float *lse = lse_of(b->a, b->work);
    UNROLL
    for (u32 k = 0; k < 2; k++)
        r->lse[k] =
            rows >> block_row(k) % WARP_ROWS & 1 ? lse[row_position(b->work, block_row(k))] : 0;
}

/* Waits for the rows that registers need at once. Other rows are first read behind stream_arrive, which waits too. */
DEVICE void wait_for_own_rows(void)
{
    COPY_ASYNC_WAIT(0);
    SYNC_WARP();
}

/* In the first iteration: LSE and the estimate of delta, and the rows to registers. */
DEVICE void load_query_rows(struct backward *b, struct query_rows *r)
{
    stream_wait_for_rows(&b->stream);
    delta_estimates(b, r->delta);
    if (!OUTPUTS_APART) {
        SYNC_WARP(); /* O is no longer read */
        copy_rows_to(b->rows, &b->a->q, b);
        if (OWN_IN_REGISTERS)
            wait_for_own_rows();
    }
    backward_load_own(b);
    r->lse[0] = scaled_lse(r->lse[0]);
    r->lse[1] = scaled_lse(r->lse[1]);
    r->sum[0] = r->sum[1] = r->count[0] = r->count[1] = r->delta_correction[0] =
        r->delta_correction[1] = 0;
}

/* Stores delta for dK; adds the correction to it. */
DEVICE void store_delta(const struct backward *b, struct query_rows *r)
{
    const struct work_item *work = b->work;
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        if (quad_lane() == 0 && item_has_row(work, block_row(k), work->exist))
            delta_put(b->a, work, row_position(work, block_row(k)), r->delta[k],
                      r->delta_correction[k]);
        r->delta[k] += r->delta_correction[k];
    }
}

/* S and dP. One after the other needs fewer registers, but not with a bias, wide heads or rows in registers. */
DEVICE void query_s_dp(const struct backward *b, struct scores s[2], u64 live)
{
    const u32 at = THREAD / 32 * 16 * PITCH;
    if (BIAS || STEPS > 6 || OWN_IN_REGISTERS) {
        backward_s_dp(b, s, 1, live);
        return;
    }
    scores_of_shared(&s[0], b->rows + at, 0, stream_operand(&b->stream, 0), live);
    scores_of_shared(&s[1], b->rows_grad + at, 0, stream_operand(&b->stream, 1), live);
}

/* dQ and PK. */
struct query_sums {
    struct sums *d_q, *p_k;
};

/* One column tile, of which some row of the warp sees the `live` slots. With ONE_PASS both sums at once; else
   the first pass only finds delta. */
DEVICE void query_tile(const struct backward *b, struct query_rows *r, u32 pass, u64 live,
                       const struct seen *seen, const struct query_sums *sums)
{
    const half_t *columns = stream_operand(&b->stream, 0);
    struct scores s[2]; /* S, then P; dP, then dS */
    query_s_dp(b, s, live);
    dropout(&s[1], b->a, dropout_kept(&b->drop, &b->stream.now, live_any(live)));
    query_ds(b, r, seen, s);
    if (ONE_PASS)
        accumulate_both(sums->d_q, &s[1], sums->p_k, &s[0], columns, live);
    else if (pass)
        accumulate(sums->d_q, &s[1], columns, live);
}

/* Two copies of the tile's code, as in forward.h. */
DEVICE void query_column_tile(struct backward *b, struct query_rows *r, u32 pass,
                              const struct query_sums *sums)
{
    const struct words words = stage_words(&b->stream);
    if (ALL_APART && words_are_whole(&words)) {
        struct run run = run_begin(&b->stream);
        NO_UNROLL
        do
            query_tile(b, r, pass, ALL_LIVE, 0, sums);
        while (run_next(&b->stream, &run));
        run_end(&b->stream);
        return;
    }
    const u64 live = live_slots(&words);
    if (!live)
        return;
    const struct seen seen = seen_of(&words);
    query_tile(b, r, pass, live, &seen, sums);
}

/* Whether another item finishes the rows of this one. */
DEVICE u32 query_is_split(const struct work_item *work)
{
    return SHARED_ROWS && ONE_PASS && work->item->split;
}

/* Row sums of dS, for the item that merges them; query_epilogue stores dQ and PK. */
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

/* dQ to the tensor; or dQ and PK, one after the other, for the item that merges them. */
DEVICE void query_epilogue(const struct backward *b, const struct query_rows *r,
                           struct sums *d_q, const struct sums *p_k)
{
    const struct work_item *work = b->work;
    const float by = ds_scale(b->a), each[2] = {by, by};
    struct view to = view_of(&b->a->d_q, work);
    struct epilogue e = {b->a, work, to, by, 0, ONE_PASS, 0, epilogue_corrections(b)};
    if (ONE_PASS && !query_is_split(work))
        sums_subtract(d_q, p_k, r->delta_correction[0], r->delta_correction[1]);
    if (!SHARED_ROWS)
        store_row_block(d_q, each, b->rows, &to, work, warp_rows(work, work->exist));
    NO_UNROLL
    for (; SHARED_ROWS && e.sum <= query_is_split(work); e.sum++) {
        epilogue_row_block(&e, d_q, r->delta_correction, b->rows);
        if (ONE_PASS)
            *d_q = *p_k;
    }
}

/* After the pass that found it: delta, merged with other items' parts, to the tensor. */
DEVICE void delta_epilogue(const struct backward *b, struct query_rows *r)
{
    if (query_is_split(b->work)) {
        query_store_partial(b, r);
        return;
    }
    if (SHARED_ROWS && ONE_PASS && b->a->merge)
        query_merge_partial(b, r);
    finish_delta(r);
    store_delta(b, r);
}

DEVICE void row_block_dq(const struct abi_args *a, struct work_item *work, struct ahead *ahead)
{
    struct backward b;
    struct query_rows r;
    struct sums d_q, p_k;
    const struct query_sums sums = {&d_q, &p_k};
    const u32 rows = backward_start(&b, a, work, ahead, OUTPUTS_APART ? &a->q : &a->o, &a->d_o);
    if (OUTPUTS_APART)
        copy_rows_to(outputs_of(&b), &a->o, &b);
    b.drop.rows_are_keys = 0;
    b.stream.a = a;
    b.stream.first = &a->k;
    b.stream.second = &a->v;
    b.stream.use = USE_FIRST | USE_SECOND | USE_NOTES;
    read_query_lse(&b, &r, rows);
    sums_clear(&d_q);
    if (ONE_PASS)
        sums_clear(&p_k);
    NO_UNROLL
    for (u32 pass = 0; pass < 2 - ONE_PASS; pass++) {
        stream_start(&b.stream, work, ONE_PASS ? rows : warp_rows(work, work->length));
        NO_UNROLL
        do {
            stream_next(&b.stream);
            if (!stream_is_first(&b.stream))
                query_column_tile(&b, &r, pass, &sums);
            else if (pass == 0)
                load_query_rows(&b, &r);
            stream_arrive(&b.stream);
        } while (stream_goes_on(&b.stream));
        work_item_restore(work, ahead, a, stream_notes(&b.stream));
        if (pass == 0)
            delta_epilogue(&b, &r);
    }
    ahead_piece(ahead, work->plan); /* the item has arrived meanwhile */
    query_epilogue(&b, &r, &d_q, &p_k);
}

ENTRY_OF(attention_dq, THREADS, QUERY_BLOCKS)(ARGS a)
{
    const u32 first = first_work(&a, &a.forward);
    if (first >= works_end(&a, &a.forward))
        return;
    struct ahead ahead = ahead_start(&a, &a.forward, first);
    NO_UNROLL
    for (u32 at = first; at < works_end(&a, &a.forward); at = ahead.at) {
        struct work_item work = work_item_at(&a, &a.forward, at, &ahead);
        if (ROW_PASS && work.global_row) {
            global_row_dq(&a, &work);
            ahead_next(&ahead, &work);
        } else {
            row_block_dq(&a, &work, &ahead);
        }
    }
}
