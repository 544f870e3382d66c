/* SPDX-License-Identifier: Apache-2.0 */
/* Forward over a row block: online softmax in base 2, each warp for its 16 rows. Weights go from the sums
   of the first product straight to the second as its operand. */
#ifndef MASKC_CUDA_TILED_FORWARD_H
#define MASKC_CUDA_TILED_FORWARD_H
#include "cuda/tiled/dropout.h"

enum {
    REGISTER_STEPS = 8, /* up to so many steps of the head the rows are held in registers */
    ROWS_IN_REGISTERS = STEPS <= REGISTER_STEPS,
    FORWARD_HALVES = ROW_BLOCK + 2 * 2 * OPERAND,
};

typedef char forward_shared_is_enough[FORWARD_SHARED >= 2 * FORWARD_HALVES ? 1 : -1];

/* Of rows g and g + 8. */
struct softmax {
    float row_max[2]; /* maximum of the scores before scaling; the same in a quad */
    float sum[2];     /* of weights; the lane's part */
};

struct forward {
    const struct abi_args *a;
    const struct work_item *work;
    struct stream stream;
    struct drop drop;
    struct rows rows;    /* ROWS_IN_REGISTERS */
    u32 q_loaded;        /* they are */
    const half_t *own;   /* the warp's rows in shared memory */
    u32 flip;            /* so that the scale is positive: signs of the rows */
    float scale;         /* to base 2 */
    float softmax_scale; /* what softmax multiplies: a bias is added after the scale */
};

/* Rows and the first columns are on their way. */
DEVICE void forward_start(struct forward *f, const struct abi_args *a,
                          const struct work_item *work, u32 use)
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
    f->own = shared + THREAD / 32 * 16 * PITCH;
    f->flip = a->scale < 0 ? 0x80008000u : 0;
    f->scale = (a->scale < 0 ? -a->scale : a->scale) * LOG2_E;
    f->softmax_scale = ADD_BIAS ? 1 : f->scale;
    SYNC();
    copy_row_block(shared, &q, work);
    copy_async_commit();
    work_item_save(work, f->stream.buffer);
    stream_start(&f->stream, work);
    f->q_loaded = !ROWS_IN_REGISTERS;
}

/* The rows have arrived with the first columns. */
DEVICE void load_q(struct forward *f)
{
    if (f->q_loaded)
        return;
    f->q_loaded = 1;
    UNROLL
    for (u32 k = 0; k < STEPS; k++) {
        load_rows(&f->rows.at[k], f->own, k);
        UNROLL
        for (u32 x = 0; x < 4; x++)
            f->rows.at[k].x[x] ^= f->flip;
    }
}

DEVICE void forward_scores(const struct forward *f, struct scores *s, u32 live)
{
    const half_t *columns = stream_operand(&f->stream, 0);
    if (ROWS_IN_REGISTERS)
        scores_of(s, &f->rows, columns, live);
    else
        scores_of_shared(s, f->own, f->flip, columns, live);
}

/* -inf where the lane's row does not see. */
DEVICE void scores_hide(struct scores *s, const struct seen *seen)
{
    UNROLL
    for (u32 k = 0; k < 4 * FRAGMENTS; k++)
        if (!sees(seen, k / 4, k % 4))
            s->at[k / 4].x[k % 4] = NEGATIVE_INFINITY;
}

/* Larger of `top` and the scores of row g (which 0) or g + 8 (1), over the quad. */
DEVICE float scores_row_max(const struct scores *s, u32 which, float row_max)
{
    UNROLL
    for (u32 f = 0; f < FRAGMENTS; f++)
        row_max = larger(row_max, larger(s->at[f].x[2 * which], s->at[f].x[2 * which + 1]));
    return quad_max(row_max);
}

/* What scores are counted from: never infinite, so that nothing becomes inf - inf. */
DEVICE float finite_max(float row_max, float scale)
{
    return row_max == NEGATIVE_INFINITY ? 0 : row_max * scale;
}

/* The sums follow a new maximum. */
DEVICE void softmax_rescale(struct softmax *state, const float row_max[2], float scale,
                            struct sums *o)
{
    float alpha[2];
    if (!ANY(row_max[0] != state->row_max[0] || row_max[1] != state->row_max[1]))
        return;
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        alpha[k] = exp2_of(state->row_max[k] * scale - finite_max(row_max[k], scale));
        state->row_max[k] = row_max[k];
        state->sum[k] *= alpha[k];
    }
    sums_scale(o, alpha[0], alpha[1]);
}

/* Scores to weights; *o and the state follow. */
DEVICE void softmax_add(struct softmax *state, struct scores *s, u32 live, float scale,
                        struct sums *o)
{
    float row_max[2] = {scores_row_max(s, 0, state->row_max[0]),
                        scores_row_max(s, 1, state->row_max[1])};
    softmax_rescale(state, row_max, scale, o);
    float shift[2] = {finite_max(row_max[0], scale), finite_max(row_max[1], scale)};
    UNROLL
    for (u32 f = 0; f < FRAGMENTS; f++) {
        UNROLL
        for (u32 x = 0; x < 4; x++) {
            float *at = &s->at[f].x[x];
            *at = is_live(live, f) ? exp2_of(*at * scale - shift[x >> 1]) : 0;
            state->sum[x >> 1] += *at;
        }
    }
}

/* lse[row] of the lane's rows, by one lane of each quad; `rows` are those of the warp that are written. */
DEVICE void store_lse(const struct abi_args *a, const struct work_item *work, u32 rows,
                      u32 which, float x)
{
    if (quad_lane() == 0 && rows >> lane_row(which) & 1)
        ((float *)lse_of(a, work))[row_position(work, block_row(which))] = x;
}

/* A row that saw nothing gets 0 and -inf. */
DEVICE void softmax_store(struct forward *f, const struct softmax *state, struct sums *o)
{
    struct view to = view_of(&f->a->o, f->work);
    const u32 rows = warp_rows(f->work, f->work->exist);
    float inverse_sum[2];
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        float sum = quad_sum(state->sum[k]);
        inverse_sum[k] = sum > 0 ? 1 / sum : 0;
        store_lse(f->a, f->work, rows, k,
                  sum > 0 ? (state->row_max[k] * f->softmax_scale + log2_of(sum)) * LN_2
                          : NEGATIVE_INFINITY);
    }
    store_row_block(o, inverse_sum[0], inverse_sum[1], SHARED_HALF(), &to, f->work);
}

/* The state as it stands, for the item that resumes. */
DEVICE void softmax_store_partial(const struct abi_args *a, const struct work_item *work,
                                  const struct softmax *state, const struct sums *o)
{
    NO_UNROLL
    for (u32 k = 0; k < 2; k++) {
        float *to = partial_to_store(a, work, k),
              sum = quad_sum(k ? state->sum[1] : state->sum[0]);
        if (!to)
            continue;
        sums_store_partial(o, k, to, 0);
        if (quad_lane() == 0)
            put_two(to + PARTIAL_NUMBERS, k ? state->row_max[1] : state->row_max[0], sum);
    }
}

/* Joins what was left of the lane's rows. */
DEVICE void softmax_merge_partial(const struct abi_args *a, const struct work_item *work,
                                  struct softmax *state, float scale, struct sums *o)
{
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        const float *from = partial_to_merge(a, work, k);
        if (!from)
            continue;
        struct f2 left = get_two(from + PARTIAL_NUMBERS);
        float row_max = larger(state->row_max[k], left.x), shift = finite_max(row_max, scale);
        float own = exp2_of(state->row_max[k] * scale - shift);
        float theirs = exp2_of(left.x * scale - shift);
        state->row_max[k] = row_max;
        state->sum[k] = state->sum[k] * own + (quad_lane() ? 0 : left.y * theirs);
        sums_merge_partial(o, k, from, 0, own, theirs);
    }
}

/* A group's part, of which `live` slots are seen; where not by all of the warp's rows, `seen` says who sees. */
DEVICE void forward_add(struct forward *f, struct softmax *state, struct sums *o, u32 live,
                        const struct seen *seen, u32 kept)
{
    const struct column_tile *ct = &f->stream.now;
    struct scores s;
    forward_scores(f, &s, live);
    if (seen) {
        bias_added(&s, f->scale, LOG2_E, f->a, f->work, ct, seen, 0);
        scores_hide(&s, seen);
    }
    softmax_add(state, &s, live, f->softmax_scale, o);
    if (seen)
        bias_scale(&s, f->a, f->work, ct, seen, 0);
    dropout(&s, f->a, kept);
    accumulate(o, &s, stream_operand(&f->stream, 1), live);
}

/* Where little else takes long to compile the text is there twice: it has no tests where all is seen. */
DEVICE void forward_column_tile(struct forward *f, struct softmax *state, struct sums *o)
{
    const struct column_tile *ct = &f->stream.now;
    load_q(f);
    const struct words words = stage_words(&f->stream);
    if (ALL_APART && words_are_whole(&words)) {
        forward_add(f, state, o, ALL_LIVE, 0, dropout_kept(&f->drop, ct, ALL_LIVE));
        return;
    }
    const u32 live = live_slots(&words);
    if (!live)
        return;
    const struct seen seen = seen_of(&words);
    forward_add(f, state, o, live, &seen, dropout_kept(&f->drop, ct, live));
}

DEVICE void row_block_forward(const struct abi_args *a, struct work_item *work)
{
    struct forward f;
    struct softmax state = {{NEGATIVE_INFINITY, NEGATIVE_INFINITY}, {0, 0}};
    struct sums o;
    sums_clear(&o);
    forward_start(&f, a, work, USE_FIRST | USE_SECOND);
    NO_UNROLL
    while (stream_step(&f.stream))
        forward_column_tile(&f, &state, &o);
    work_item_restore(work, a, f.stream.buffer);
    if (SHARED_ROWS && a->merge)
        softmax_merge_partial(a, work, &state, f.softmax_scale, &o);
    if (SHARED_ROWS && work->item->split)
        softmax_store_partial(a, work, &state, &o);
    else
        softmax_store(&f, &state, &o);
}

#endif
