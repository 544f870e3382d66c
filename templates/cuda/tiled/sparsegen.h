/* SPDX-License-Identifier: Apache-2.0 */
/* Sparsegen-lin over a row block: P = max(0, S - tau) / (1 - lambda), where tau makes the row sum to one.

       pass 1, column tiles:   load K, compute_qk, S plus bias, masked, to the scratch
       tau                     by Newton's method from below; the support only shrinks
       pass 2, column tiles:   load V, P from the scratch, dropout, O += P V

   A lane reads back from the scratch what it wrote. */
#ifndef MASKC_CUDA_TILED_SPARSEGEN_H
#define MASKC_CUDA_TILED_SPARSEGEN_H
#include "cuda/tiled/forward.h"

/* Index in the scratch of the lane's entry x of a fragment: BLOCK_ROWS scores for each column. */
DEVICE u64 scratch_at(const struct column_tile *ct, u32 fragment, u32 x)
{
    u32 slot = 8 * fragment + lane_pair() + (x & 1);
    return (u64)(ct->stored + (i32)slot) * BLOCK_ROWS + block_row(x >> 1);
}

DEVICE u32 slot_counts(const struct column_tile *ct, u32 fragment, u32 x)
{
    u32 slot = 8 * fragment + lane_pair() + (x & 1);
    return slot >= first_slot(ct) && slot < end_slot(ct);
}

/* Unrolled fragments: one where a bias makes their code long. */
enum { KEPT_UNROLLED = BIAS ? 1 : FRAGMENTS };

DEVICE void keep_fragment(const struct forward *f, const struct seen *seen, u32 at,
                          float *scratch, struct frag_c *s, float row_max[2])
{
    const struct column_tile *ct = &f->stream.now;
    UNROLL
    for (u32 x = 0; x < 4; x++) {
        s->x[x] = sees(seen, at, x) ? s->x[x] * f->softmax_scale : NEGATIVE_INFINITY;
        if (slot_counts(ct, at, x))
            global_put(scratch + scratch_at(ct, at, x), s->x[x]);
        row_max[x >> 1] = larger(row_max[x >> 1], s->x[x]);
    }
}

/* Scores of a column tile to the scratch, -inf where a row does not see. */
DEVICE void keep_scores(struct forward *f, float *scratch, float row_max[2])
{
    const struct column_tile *ct = &f->stream.now;
    struct scores s;
    const struct words words = stage_words(&f->stream);
    const u64 live = live_slots(&words);
    if (live)
        compute_qk(f, &s, live);
    else
        scores_clear(&s);
    const struct seen seen = seen_of(&words);
    const struct bias_place place = {f->a, f->work, ct};
    bias_added(&s, f->scale, 1, place, &seen);
    UNROLL_BY(KEPT_UNROLLED)
    for (u32 at = 0; at < FRAGMENTS; at++) {
        struct frag_c first = s.at[0];
        keep_fragment(f, &seen, at, scratch, &first, row_max);
        scores_rotate(&s, &first);
    }
}

struct support {
    float sum[2], count[2]; /* of scores above a threshold, less the row maximum */
};

/* Sum and number of the lane's entries, then of the quad's. */
DEVICE struct support support_above(const float *scratch, u32 columns, const float row_max[2],
                                    const float threshold[2])
{
    struct support r = {{0, 0}, {0, 0}};
    UNROLL
    for (u32 which = 0; which < 2; which++) {
        NO_UNROLL
        for (u32 c = quad_lane(); c < columns; c += 4) {
            float z =
                global_get(scratch + (u64)c * BLOCK_ROWS + block_row(which)) - row_max[which];
            r.sum[which] += z > threshold[which] ? z : 0;
            r.count[which] += z > threshold[which] ? 1 : 0;
        }
        r.sum[which] = quad_sum(r.sum[which]);
        r.count[which] = quad_sum(r.count[which]);
    }
    return r;
}

/* tau of the lane's rows. */
DEVICE void find_tau(float tau[2], const float *scratch, u32 columns, const float row_max[2],
                     float total)
{
    float threshold[2] = {-total, -total}, before[2] = {-1, -1};
    u32 going = 1;
    while (ANY(going)) {
        struct support s = support_above(scratch, columns, row_max, threshold);
        going = 0;
        UNROLL
        for (u32 k = 0; k < 2; k++) {
            u32 moves = s.count[k] > 0 && s.count[k] != before[k];
            if (moves)
                threshold[k] = larger(threshold[k], (s.sum[k] - total) / s.count[k]);
            before[k] = s.count[k];
            going |= moves;
        }
    }
    UNROLL
    for (u32 k = 0; k < 2; k++)
        tau[k] = tau_of(row_max[k], threshold[k]);
}

/* Adds P V of a column tile, P being computed from the scores in the scratch. */
DEVICE void add_kept(const struct forward *f, const float *scratch, const float tau[2],
                     struct sums *o)
{
    const struct column_tile *ct = &f->stream.now;
    const float p_scale = sparsegen_scale(f->a);
    const struct words words = stage_words(&f->stream);
    const struct seen seen = seen_of(&words);
    const u64 live = live_slots(&words);
    struct scores s;
    if (!live)
        return;
    scores_clear(&s);
    UNROLL_BY(KEPT_UNROLLED)
    for (u32 at = 0; at < FRAGMENTS; at++) {
        struct frag_c first;
        UNROLL
        for (u32 x = 0; x < 4; x++) {
            float score = sees(&seen, at, x) ? global_get(scratch + scratch_at(ct, at, x))
                                             : NEGATIVE_INFINITY;
            first.x[x] = sparsegen_p(score, tau[x >> 1], p_scale);
        }
        scores_rotate(&s, &first);
    }
    const struct bias_place place = {f->a, f->work, ct};
    bias_scale(&s, place, &seen);
    dropout(&s, f->a, dropout_kept(&f->drop, ct, live_any(live)));
    accumulate(o, &s, stream_operand(&f->stream, 1), live);
}

DEVICE void row_block_sparsegen(const struct abi_args *a, const struct work_item *work,
                                const struct ahead *ahead)
{
    struct forward f;
    struct sums o;
    struct view to = view_of(&a->o, work);
    float *scratch = scratch_of(a), row_max[2] = {NEGATIVE_INFINITY, NEGATIVE_INFINITY}, tau[2];
    forward_start(&f, a, work, ahead, USE_FIRST);
    f.scale = a->scale < 0 ? -a->scale : a->scale; /* not to base 2 */
    f.softmax_scale = ADD_BIAS ? 1 : f.scale;
    NO_UNROLL
    do {
        stream_next(&f.stream);
        if (stream_is_first(&f.stream))
            load_q(&f);
        else
            keep_scores(&f, scratch, row_max);
        stream_arrive(&f.stream);
    } while (stream_goes_on(&f.stream));
    row_max[0] = quad_max(row_max[0]);
    row_max[1] = quad_max(row_max[1]);
    /* A quad reads what its lanes wrote: the last step of the stream had a barrier. */
    find_tau(tau, scratch, f.stream.walk.stored, row_max, 1 - a->lambda);
    f.stream.use = USE_SECOND;
    sums_clear(&o);
    stream_start(&f.stream, work, warp_rows(work, work->length));
    NO_UNROLL
    do {
        stream_next(&f.stream);
        if (!stream_is_first(&f.stream))
            add_kept(&f, scratch, tau, &o);
        stream_arrive(&f.stream);
    } while (stream_goes_on(&f.stream));
    const u32 rows = warp_rows(work, work->exist);
    store_lse(a, work, rows, 0, tau[0]);
    store_lse(a, work, rows, 1, tau[1]);
    const float ones[LANE_ROWS] = {1, 1};
    store_row_block(&o, ones, SHARED_HALF(), &to, work, rows);
}

#endif
