/* SPDX-License-Identifier: Apache-2.0 */
/* dK and dV of a row block of keys, over the transposed plan: rows are keys, columns are queries.

       for each column tile of 32 queries:
           stream_next               Q, dO, and LSE and delta of each column
           backward_s_dp             S^T = K Q^T, dP^T = V dO^T
           key_p_ds                  P = 2^(S - LSE), dS = P (dP - delta); dropout
           accumulate                dV += P^T dO, dK += dS^T Q
       key_epilogue                  to the tensors

   At D > 128 registers hold one sum: a first pass over the columns for dK, a second for dV. */
/* Registers of two sums over 128 elements leave none for what is read ahead. */
#define READS_AHEAD (HEAD_DIM < 128)
#include "cuda/common/key_heads.h"
#include "cuda/tiled/epilogue.h"
#include "cuda/tiled/global_row_backward.h"

/* P or dP of an entry, times X where that is a scale, after dropout. */
DEVICE float entry_dropped(const struct abi_args *a, float p, float bias, u32 kept)
{
    if (SCALE_PROBS)
        p *= bias;
    if (!DROPOUT)
        return p;
    return kept ? p * a->keep_scale : 0;
}

/* S and dP of the lane's entries of fragment f to P, after dropout, and dS. LSE and delta of the lane's two columns
   lie side by side in shared memory. `kept` has a bit for each entry. */
DEVICE void key_fragment_p_ds(const struct backward *b, const struct seen *seen, u32 f,
                              u32 kept, struct frag_c *s, struct frag_c *dp)
{
    const struct f4 two =
        shared_get4(column_numbers(&b->stream, b->stream.buffer_index, 8 * f + lane_pair()));
    const float lse[2] = {two.x, two.z}, delta[2] = {two.y, two.w};
    const float p_scale = sparsegen_scale(b->a);
    struct frag_c bias = {{0, 0, 0, 0}};
    backward_bias(b, seen, f, 1, s, &bias);
    UNROLL
    for (u32 x = 0; x < 4; x++) {
        float p = probability(b, s->x[x], lse[x % 2], p_scale);
        const u32 keeps = kept >> x & 1;
        p = sees(seen, f, x) ? p : 0;
        dp->x[x] =
            score_gradient(p, entry_dropped(b->a, dp->x[x], bias.x[x], keeps), delta[x % 2]);
        s->x[x] = entry_dropped(b->a, p, bias.x[x], keeps);
    }
}

/* S and dP of a column tile to P and dS. */
DEVICE void key_p_ds(const struct backward *b, const struct seen *seen, u32 kept,
                     struct scores s[2])
{
    UNROLL_BY(FRAGMENTS_UNROLLED)
    for (u32 f = 0; f < FRAGMENTS; f++) {
        struct frag_c first = s[0].at[0], second = s[1].at[0];
        key_fragment_p_ds(b, seen, f, kept >> (4 * f), &first, &second);
        scores_rotate(&s[0], &first);
        scores_rotate(&s[1], &second);
    }
}

/* Sums of a pass: dK and dV together, or dK in the first pass and dV in the second. */
enum { KEY_SUMS = BOTH_AT_ONCE ? 2 : 1, KEY_PASSES = 3 - KEY_SUMS };

/* One column tile, of which some row of the warp sees the `live` slots. */
DEVICE void key_tile(const struct backward *b, u32 pass, u64 live, const struct seen *seen,
                     struct sums sums[KEY_SUMS])
{
    struct scores s[2]; /* S, then P; dP, then dS */
    u32 kept = dropout_kept(&b->drop, &b->stream.now, live_any(live));
    backward_s_dp(b, s, pass == 0, live);
    key_p_ds(b, seen, kept, s);
    if (BOTH_AT_ONCE)
        accumulate(&sums[1], &s[0], stream_operand(&b->stream, 1), live);
    else if (pass)
        s[1] = s[0];
    accumulate(&sums[0], &s[1], stream_operand(&b->stream, BOTH_AT_ONCE ? 0 : pass), live);
}

/* Two copies of the tile's code, as in forward.h. */
DEVICE void key_column_tile(struct backward *b, u32 pass, struct sums sums[KEY_SUMS])
{
    const struct words words = stage_words(&b->stream);
    if (ALL_APART && words_are_whole(&words)) {
        struct run run = run_begin(&b->stream);
        NO_UNROLL
        do
            key_tile(b, pass, ALL_LIVE, 0, sums);
        while (run_next(&b->stream, &run));
        run_end(&b->stream);
        return;
    }
    const u64 live = live_slots(&words);
    if (!live)
        return;
    const struct seen seen = seen_of(&words);
    key_tile(b, pass, live, &seen, sums);
}

/* Stores sums that key_heads.h adds up: floats, straight from registers. */
DEVICE void store_floats(const struct sums *s, float by, const struct view *to,
                         const struct work_item *work, u32 rows)
{
    UNROLL
    for (u32 which = 0; which < 2; which++) {
        u8 *row = to->data + row_position(work, block_row(which)) * to->row;
        if (!(rows >> lane_row(which) & 1))
            continue;
        UNROLL
        for (u32 f = 0; f < HEAD_CHUNKS; f++)
            put_two((float *)row + 8 * f + lane_pair(), s->at[f].x[2 * which] * by,
                    s->at[f].x[2 * which + 1] * by);
    }
}

/* dK (0) or dV (1), to the tensor or for the item that merges it. Staged where V lay, then where K lay: each is
   no longer read. */
DEVICE void key_epilogue(const struct backward *b, struct sums *s, u32 sum, u32 rows)
{
    const struct work_item *work = b->work;
    const float by = sum ? 1 : ds_scale(b->a), each[2] = {by, by}, delta_correction[2] = {0, 0};
    half_t *staging = sum ? b->rows : b->rows_grad;
    struct view to = view_of(sum ? &b->a->d_v : &b->a->d_k, work);
    struct epilogue e = {b->a, work, to, by, sum, 0, GROUPED, epilogue_corrections(b)};
    if (SHARED_ROWS)
        epilogue_row_block(&e, s, delta_correction, staging);
    else if (GROUPED)
        store_floats(s, by, &to, work, rows);
    else
        store_row_block(s, each, staging, &to, work, rows);
}

DEVICE void row_block_dkv(const struct abi_args *a, struct work_item *work, struct ahead *ahead)
{
    struct backward b;
    struct sums sums[KEY_SUMS];
    const u32 take_part = backward_start(&b, a, work, ahead, &a->k, &a->v);
    b.drop.rows_are_keys = 1;
    b.stream.a = a;
    b.stream.first = &a->q;
    b.stream.second = &a->d_o;
    b.stream.use = USE_FIRST | USE_SECOND | USE_NOTES | USE_NUMBERS;
    NO_UNROLL
    for (u32 pass = 0; pass < KEY_PASSES; pass++) {
        UNROLL
        for (u32 k = 0; k < KEY_SUMS; k++)
            sums_clear(&sums[k]);
        stream_start(&b.stream, work, BOTH_AT_ONCE ? take_part : warp_rows(work, work->length));
        NO_UNROLL
        do {
            stream_next(&b.stream);
            if (!stream_is_first(&b.stream))
                key_column_tile(&b, pass, sums);
            else if (pass == 0) {
                stream_wait_for_rows(&b.stream);
                backward_load_own(&b);
            }
            stream_arrive(&b.stream);
        } while (stream_goes_on(&b.stream));
        work_item_restore(work, ahead, a, stream_notes(&b.stream));
        const u32 rows = SHARED_ROWS ? 0 : warp_rows(work, work->exist);
        NO_UNROLL
        for (u32 k = 0; k < KEY_SUMS; k++) { /* a copy, not an index, keeps sums in registers */
            key_epilogue(&b, &sums[0], BOTH_AT_ONCE ? k : pass, rows);
            sums[0] = sums[KEY_SUMS - 1];
        }
    }
    ahead_piece(ahead, work->plan);
}

ENTRY_OF(attention_dkv, THREADS, KEY_BLOCKS)(ARGS a)
{
    const u32 first = first_work(&a, &a.transposed);
    if (first >= works_end(&a, &a.transposed))
        return;
    struct ahead ahead = ahead_start(&a, &a.transposed, first);
    NO_UNROLL
    for (u32 at = first; at < works_end(&a, &a.transposed); at = ahead.at) {
        struct work_item work = work_item_at(&a, &a.transposed, at, &ahead);
        if (ROW_PASS && work.global_row) {
            global_row_dkv(&a, &work);
            ahead_next(&ahead, &work);
        } else {
            row_block_dkv(&a, &work, &ahead);
        }
    }
}
