/* SPDX-License-Identifier: Apache-2.0 */
/* Forward over a row block of queries, each warp for its rows:

       for each column tile of 32 keys, and before the first:
           stream_next               copies of the next tile run meanwhile
           load_q                    before the first, and nothing below but stream_arrive
           compute_qk                S = Q K^T
           apply_mask                S = -inf where the row does not see the key
           online_softmax            P = 2^(S - m), l = l + sum P; before, if some S is far above m:
                                     m' = max(m, S), alpha = 2^(m - m'), l = alpha l, O = alpha O
           apply_dropout             P = P times 0 or 1 / (1 - rate)
           compute_pv                O = O + P V
           stream_arrive
       forward_epilogue              O / l, LSE = (m + log2 l) ln 2

   P goes from the accumulators of S straight to the operand of P V, rounded to 16 bits. */
#ifndef MASKC_CUDA_TILED_FORWARD_H
#define MASKC_CUDA_TILED_FORWARD_H
#include "cuda/tiled/dropout.h"
#include "cuda/tiled/softmax.h"

enum {
    REGISTER_STEPS = 8, /* up to so many steps of the head the rows are held in registers */
    ROWS_IN_REGISTERS = STEPS <= REGISTER_STEPS,
    FORWARD_HALVES = ROW_BLOCK + 2 * 2 * OPERAND + 2 * FORWARD_NOTES,
};

typedef char
    forward_shared_is_as_planned[2 * FORWARD_HALVES == TILED_FORWARD_BYTES(BLOCK_ROWS, THREADS,
                                                                           HEAD_DIM) &&
                                         FORWARD_SHARED >= 2 * FORWARD_HALVES
                                     ? 1
                                     : -1];

struct forward {
    const struct abi_args *a;
    const struct work_item *work;
    struct stream stream;
    struct drop drop;
    struct rows rows[ROW_TILES]; /* Q, with ROWS_IN_REGISTERS */
    const half_t *own;           /* the warp's rows in shared memory */
    u32 flip;                    /* sign bits to flip in Q, so that the scale is positive */
    float scale;                 /* to base 2 */
    float
        softmax_scale; /* what is left for softmax to multiply: 1 where a bias was added to scaled scores */
};

/* Starts the copies of Q; the stream starts those of the first K and V. */
DEVICE void forward_start(struct forward *f, const struct abi_args *a,
                          const struct work_item *work, const struct ahead *ahead, u32 use)
{
    struct view q = view_of(&a->q, work);
    half_t *shared = SHARED_HALF();
    f->a = a;
    f->work = work;
    f->drop.a = a;
    f->drop.work = work;
    f->drop.rows_are_keys = 0;
    f->stream.a = a;
    f->stream.first = &a->k;
    f->stream.second = &a->v;
    f->stream.buffer = shared + ROW_BLOCK;
    f->stream.buffers = 2;
    f->stream.use = use;
    f->own = shared + warp_place();
    f->flip = a->scale < 0 ? 0x80008000u : 0;
    f->scale = (a->scale < 0 ? -a->scale : a->scale) * LOG2_E;
    f->softmax_scale = ADD_BIAS ? 1 : f->scale;
    SYNC();
    const u32 rows = warp_rows(work, work->length);
    copy_row_block(shared, &q, work, rows);
    copy_async_commit();
    work_item_save(work, ahead, stream_notes(&f->stream));
    stream_start(&f->stream, work, rows);
}

/* In the first iteration. */
DEVICE void load_q(struct forward *f)
{
    stream_wait_for_rows(&f->stream);
    UNROLL
    for (u32 k = 0; k < STEPS * ROW_TILES && ROWS_IN_REGISTERS; k++) {
        const u32 m = k % ROW_TILES, step = k / ROW_TILES;
        load_rows(&f->rows[m].at[step], f->own + m * 16 * PITCH, step);
        UNROLL
        for (u32 x = 0; x < 4; x++)
            f->rows[m].at[step].x[x] ^= f->flip;
    }
}

DEVICE void compute_qk(const struct forward *f, struct scores s[ROW_TILES], u64 live)
{
    const half_t *columns = stream_operand(&f->stream, 0);
    if (ROWS_IN_REGISTERS)
        scores_of(s, f->rows, columns, live);
    else
        scores_of_shared(s, f->own, f->flip, columns, live);
}

/* Scores plus bias; -inf where the lane's row does not see. `seen` is null where all rows see all columns. */
DEVICE void apply_mask(const struct forward *f, struct scores s[ROW_TILES],
                       const struct seen *seen)
{
    if (!seen)
        return;
    const struct bias_place at = {f->a, f->work, &f->stream.now};
    bias_added(&s[0], f->scale, LOG2_E, at, seen);
    UNROLL
    for (u32 k = 0; k < 4 * FRAGMENTS * ROW_TILES; k++) {
        const u32 m = k / (4 * FRAGMENTS), entry = k % (4 * FRAGMENTS);
        if (!tile_sees(seen, m, entry / 4, entry % 4))
            s[m].at[entry / 4].x[entry % 4] = NEGATIVE_INFINITY;
    }
}

/* Writes x to lse[row] of the lane's row, by one lane of each quad; `rows` has a bit for each row of the warp
   that is written. */
DEVICE void store_lse(const struct abi_args *a, const struct work_item *work, u32 rows,
                      u32 which, float x)
{
    if (quad_lane() == 0 && rows >> lane_row(which) & 1)
        ((float *)lse_of(a, work))[row_position(work, block_row(which))] = x;
}

/* O / sum and LSE; a row that saw nothing gets 0 and -inf. */
DEVICE void softmax_store(struct forward *f, const struct softmax state[ROW_TILES],
                          struct sums o[ROW_TILES], struct ahead *ahead)
{
    struct view to = view_of(&f->a->o, f->work);
    const u32 rows = warp_rows(f->work, f->work->exist);
    float inverse_sum[LANE_ROWS];
    UNROLL
    for (u32 k = 0; k < LANE_ROWS; k++) {
        const struct softmax *of = &state[k / 2];
        float sum = quad_sum(of->sum[k % 2]);
        inverse_sum[k] = saw_nothing(sum) ? 0 : 1 / sum;
        store_lse(f->a, f->work, rows, k,
                  saw_nothing(sum)
                      ? NEGATIVE_INFINITY
                      : (of->row_max[k % 2] * f->softmax_scale + log2_of(sum)) * LN_2);
    }
    ahead_piece(ahead, f->work->plan); /* the item has arrived meanwhile */
    store_row_block(o, inverse_sum, SHARED_HALF(), &to, f->work, rows);
}

/* The unscaled sums and the softmax state of row tile m, for the item that merges them. */
DEVICE void softmax_store_partial(const struct abi_args *a, const struct work_item *work, u32 m,
                                  const struct softmax *state, const struct sums *o)
{
    NO_UNROLL
    for (u32 k = 0; k < 2; k++) {
        float *to = partial_to_store(a, work, 2 * m + k),
              sum = quad_sum(k ? state->sum[1] : state->sum[0]);
        if (!to)
            continue;
        sums_store_partial(o, k, to, 0);
        if (quad_lane() == 0)
            put_two(to + PARTIAL_NUMBERS, k ? state->row_max[1] : state->row_max[0], sum);
    }
}

/* Merges the partial results of the lane's rows of row tile m, where there are any. */
DEVICE void softmax_merge_partial(const struct abi_args *a, const struct work_item *work, u32 m,
                                  struct softmax *state, float scale, struct sums *o)
{
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        const float *from = partial_to_merge(a, work, 2 * m + k);
        if (!from)
            continue;
        struct f2 stored = get_two(from + PARTIAL_NUMBERS); /* row_max, sum */
        float row_max = larger(state->row_max[k], stored.x), shift = finite_max(row_max, scale);
        float own = exp2_of(state->row_max[k] * scale - shift);
        float theirs = exp2_of(stored.x * scale - shift);
        state->row_max[k] = row_max;
        state->sum[k] = state->sum[k] * own + (quad_lane() ? 0 : stored.y * theirs);
        sums_merge_partial(o, k, from, 0, own, theirs);
    }
}

DEVICE void apply_dropout(const struct forward *f, struct scores *s, const struct seen *seen,
                          u32 kept)
{
    const struct bias_place at = {f->a, f->work, &f->stream.now};
    if (seen)
        bias_scale(s, at, seen);
    dropout(s, f->a, kept);
}

DEVICE void compute_pv(const struct forward *f, struct sums o[ROW_TILES],
                       const struct scores p[ROW_TILES], u64 live)
{
    accumulate(o, p, stream_operand(&f->stream, 1), live);
}

/* One column tile, of which some row of the warp sees the `live` slots; `seen` says which rows, null all. */
DEVICE void forward_tile(struct forward *f, struct softmax state[ROW_TILES],
                         struct sums o[ROW_TILES], u64 live, const struct seen *seen, u32 kept)
{
    struct scores s[ROW_TILES];
    compute_qk(f, s, live);
    apply_mask(f, s, seen);
    online_softmax(state, s, live, f->softmax_scale, o);
    apply_dropout(f, &s[0], seen, kept);
    compute_pv(f, o, s, live);
}

/* Two copies of the tile's code where that compiles fast enough: the first, for tiles that all rows see whole,
   tests nothing, and repeats for a run of them. */
DEVICE void forward_column_tile(struct forward *f, struct softmax state[ROW_TILES],
                                struct sums o[ROW_TILES])
{
    const struct column_tile *ct = &f->stream.now;
    const struct words words = stage_words(&f->stream);
    if (ALL_APART && words_are_whole(&words)) {
        struct run run = run_begin(&f->stream);
        NO_UNROLL
        do
            forward_tile(f, state, o, ALL_LIVE, 0, 0);
        while (run_next(&f->stream, &run));
        run_end(&f->stream);
        return;
    }
    const u64 live = live_slots(&words);
    if (!live)
        return;
    const struct seen seen = seen_of(&words);
    forward_tile(f, state, o, live, &seen, dropout_kept(&f->drop, ct, live_any(live)));
}

DEVICE void forward_epilogue(struct forward *f, struct softmax state[ROW_TILES],
                             struct sums o[ROW_TILES], struct ahead *ahead)
{
    UNROLL
    for (u32 m = 0; SHARED_ROWS && m < ROW_TILES; m++) {
        if (f->a->merge)
            softmax_merge_partial(f->a, f->work, m, &state[m], f->softmax_scale, &o[m]);
        if (f->work->item->split)
            softmax_store_partial(f->a, f->work, m, &state[m], &o[m]);
    }
    if (!SHARED_ROWS || !f->work->item->split)
        softmax_store(f, state, o, ahead);
    else
        ahead_piece(ahead, f->work->plan);
}

DEVICE void row_block_forward(const struct abi_args *a, struct work_item *work,
                              struct ahead *ahead)
{
    const struct softmax none = {
        {NEGATIVE_INFINITY, NEGATIVE_INFINITY}, {NEGATIVE_INFINITY, NEGATIVE_INFINITY}, {0, 0}};
    struct forward f;
    struct softmax state[ROW_TILES];
    struct sums o[ROW_TILES];
    UNROLL
    for (u32 m = 0; m < ROW_TILES; m++)
        state[m] = none;
    sums_clear(o);
    forward_start(&f, a, work, ahead, USE_FIRST | USE_SECOND);
    NO_UNROLL
    do {
        stream_next(&f.stream);
        if (stream_is_first(&f.stream))
            load_q(&f);
        else
            forward_column_tile(&f, state, o);
        stream_arrive(&f.stream);
    } while (stream_goes_on(&f.stream));
    work_item_restore(work, ahead, a, stream_notes(&f.stream));
    forward_epilogue(&f, state, o, ahead);
}

#endif
