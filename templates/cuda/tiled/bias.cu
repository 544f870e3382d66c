/* SPDX-License-Identifier: Apache-2.0 */
/* Tiled family: dX, the gradient of a bias, after dQ, which stored delta. A block owns a row block of queries,
   one or two column tiles of keys and a chunk of the batch:

       for each sequence of the chunk, in order:
           bias_bring                Q, dO, K, V to shared memory
           for each column tile:
               S = Q K^T, dP = dO V^T, P = 2^(S - LSE)
               dX += P (dP - delta)  additive bias
               dX += P dP            bias that scales probabilities
       bias_store

   Neighbouring blocks take the same sequences. */
#include "cuda/common/bias_sum.h"
#include "cuda/common/mask_word.h"
#include "cuda/tiled/backward.h"

enum {
    BIAS_TILES = TILED_BUFFERS(HEAD_DIM),
    BIAS_COLUMNS = BIAS_TILES * TILE_COLS,
    BIAS_HALVES = 2 * ROW_BLOCK + 2 * BIAS_TILES * OPERAND,
};

typedef char bias_shared_is_as_planned[2 * BIAS_HALVES <= TILED_BACKWARD_BYTES(
                                                              BLOCK_ROWS, THREADS, HEAD_DIM) &&
                                               BIAS_SHARED >= 2 * BIAS_HALVES
                                           ? 1
                                           : -1];

struct bias_tile {
    struct backward b;
    struct work_item *work;  /* of the sequence that is being added */
    u32 row0, column;        /* first query, first key */
    u32 word[BIAS_TILES][2]; /* what the lane's rows see */
    half_t *keys, *values;   /* shared */
};

/* Starts copying rows of a tensor; zeros beyond the sequence. */
DEVICE void bias_copy(half_t *to, const struct abi_tensor *t, const struct work_item *work,
                      u32 first, u32 count)
{
    struct view v = view_of(t, work);
    NO_UNROLL
    for (u32 k = THREAD; k < count * CHUNKS; k += THREADS) {
        u32 r = k / CHUNKS, chunk = k % CHUNKS, row = first + r;
        u32 there = chunk < HEAD_CHUNKS && row < work->length;
        copy_async_16(to + chunk_place(r, chunk),
                      v.data + (there ? row * v.row + 16 * chunk : 0), there);
    }
}

DEVICE void bias_bring(const struct bias_tile *t)
{
    const struct abi_args *a = t->b.a;
    SYNC();
    bias_copy(t->b.rows, &a->q, t->work, t->row0, BLOCK_ROWS);
    bias_copy(t->b.rows_grad, &a->d_o, t->work, t->row0, BLOCK_ROWS);
    bias_copy(t->keys, &a->k, t->work, t->column, BIAS_COLUMNS);
    bias_copy(t->values, &a->v, t->work, t->column, BIAS_COLUMNS);
    copy_async_commit();
    COPY_ASYNC_WAIT(0);
    SYNC();
}

/* LSE and delta of the lane's rows; LSE = inf, so P = 0, for a row without a gradient. */
DEVICE void bias_load_delta(const struct bias_tile *t, float lse[2], float delta[2],
                            float delta_correction[2])
{
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        u32 row = t->row0 + block_row(k), there = row < t->work->length;
        float *from = delta_of(t->b.a, t->work) + row;
        lse[k] = scaled_lse(there ? lse_of(t->b.a, t->work)[row] : 0);
        delta[k] = there ? *from : 0;
        delta_correction[k] = ADD_BIAS && there ? *bias_delta_correction(t->b.a, from) : 0;
        if (ADD_BIAS && delta_correction[k] == -NEGATIVE_INFINITY) {
            lse[k] = delta_correction[k];
            delta_correction[k] = 0;
        }
    }
}

/* Bits of the entries that dropout keeps; row and column are multiples of 16. */
DEVICE u32 bias_kept(const struct bias_tile *t, u32 column, u32 live)
{
    u32 kept = 0, row = t->row0 + block_row(0);
    if (!DROPOUT || !t->b.a->keep_below)
        return 0xffff;
    NO_UNROLL
    for (u32 pair = 0; pair < FRAGMENTS / 2; pair++)
        if (has_pair(live, pair))
            kept |= kept_of_queries(draws_of(&t->b.drop), row, column + 16 * pair)
                    << (8 * pair);
    return kept;
}

/* Adds X, if the bias is additive; `column` is the column tile's first. */
DEVICE void bias_tile_add(const struct bias_tile *t, struct scores *s, u32 column,
                          const struct seen *seen)
{
    const u64 below = 8 * (u64)t->b.a->forward.n;
    const float *at = t->b.a->bias +
                      bias_at(t->b.a, t->work->h, t->row0 + block_row(0), column + lane_pair());
    UNROLL
    for (u32 k = 0; ADD_BIAS && k < 4 * FRAGMENTS; k++) {
        float *x = &s->at[k / 4].x[k % 4];
        const float *from = at + (k >> 1 & 1 ? below : 0) + 8 * (k / 4) + (k & 1);
        float bias = sees(seen, k / 4, k % 4) ? *from : 0;
        *x = *x * t->b.scale + bias * (TRANSFORM == ABI_SPARSEGEN ? 1 : LOG2_E);
    }
}

/* Adds one sequence's part of dX for column tile `tile`. Its words and sums are in the first place:
   bias_rotate() has moved them there. */
DEVICE void bias_add_column_tile(const struct bias_tile *t, u32 tile, const float lse[2],
                                 const float delta[2], const float delta_correction[2],
                                 struct scores *sum)
{
    const u32 at = warp_place(), column = t->column + tile * TILE_COLS;
    const half_t *rows[2] = {t->b.rows + at, t->b.rows_grad + at};
    const half_t *columns[2] = {t->keys + tile * OPERAND, t->values + tile * OPERAND};
    const float p_scale = sparsegen_scale(t->b.a);
    struct scores s[2]; /* S and dP */
    struct words words;
    UNROLL
    for (u32 k = 0; k < 2; k++) {
        u32 end = column < t->work->length ? smaller(TILE_COLS, t->work->length - column) : 0;
        u32 there = t->row0 + block_row(k) < t->work->length;
        words.row[k] = there ? t->word[0][k] & bits_between(0, end) : 0;
    }
    const u64 live = live_slots(&words);
    if (!live)
        return;
    scores_of_both(s, rows, columns, live);
    dropout(&s[1], t->b.a, bias_kept(t, column, live_any(live)));
    const struct seen seen = seen_of(&words);
    bias_tile_add(t, &s[0], column, &seen);
    UNROLL
    for (u32 k = 0; k < 4 * FRAGMENTS; k++) {
        u32 which = k >> 1 & 1;
        float dp = s[1].at[k / 4].x[k % 4];
        float p = probability(&t->b, s[0].at[k / 4].x[k % 4], lse[which], p_scale);
        float x = SCALE_PROBS ? p * dp
                              : score_gradient(p, dp - delta[which], delta_correction[which]);
        if (ADD_BIAS && TRANSFORM == ABI_SPARSEGEN)
            x *= p_scale;
        sum->at[k / 4].x[k % 4] += sees(&seen, k / 4, k % 4) ? x : 0;
    }
}

/* Stores the column tile that begins at `column`. A loop: this is not on the critical path. */
DEVICE void bias_store(const struct bias_tile *t, float *part, u32 column, struct scores *sum)
{
    const u32 n = t->b.a->forward.n, row = t->row0 + block_row(0);
    NO_UNROLL
    for (u32 f = 0; f < FRAGMENTS; f++) {
        const u32 key = column + 8 * f + lane_pair();
        float *to = part + bias_at(t->b.a, t->work->h, row, key);
        const struct frag_c first = sum->at[0];
        UNROLL
        for (u32 x = 0; x < 4; x++)
            if (row + 8 * (x >> 1) < n && key + (x & 1) < n)
                to[(x >> 1 ? 8 * (u64)n : 0) + (x & 1)] = first.x[x];
        scores_rotate(sum, &first);
    }
}

/* Rotates: the first column tile becomes the last. Loops over column tiles then index no registers. */
DEVICE void bias_rotate(struct bias_tile *t, struct scores sum[BIAS_TILES])
{
    UNROLL
    for (u32 g = 1; g < BIAS_TILES; g++) {
        struct scores first = sum[0];
        sum[0] = sum[g];
        sum[g] = first;
        UNROLL
        for (u32 k = 0; k < 2; k++) {
            u32 word = t->word[0][k];
            t->word[0][k] = t->word[g][k];
            t->word[g][k] = word;
        }
    }
}

/* The mask's words of the lane's rows. Returns not 0 if any row of the block sees anything, the same for all its
   threads. */
DEVICE u32 bias_words(struct bias_tile *t)
{
    const u32 n = t->b.a->forward.n;
    u32 any = 0;
    NO_UNROLL
    for (u32 k = 0; k < 2 * BIAS_TILES; k++) {
        u32 row = t->row0 + block_row(k % 2), column = t->column + k / 2 * TILE_COLS;
        u32 word =
            row < n && column < n ? mask_word(&t->b.a->forward, t->work->h, row, column) : 0;
        UNROLL
        for (u32 to = 0; to < 2 * BIAS_TILES; to++)
            t->word[to / 2][to % 2] = to == k ? word : t->word[to / 2][to % 2];
        any |= word;
    }
    any = warp_or(any);
    SYNC();
    if (lane() == 0)
        shared_put_u32(t->b.rows + 2 * (THREAD / 32), any);
    SYNC();
    UNROLL
    for (u32 w = 0; w < THREADS / 32; w++)
        any |= shared_get_u32(t->b.rows + 2 * w);
    return any;
}

DEVICE void bias_tile_gradient(const struct abi_args *a, u32 h, u32 row0, u32 column, u32 chunk)
{
    const u32 n = a->forward.n;
    struct bias_tile t;
    struct work_item work;
    struct scores sum[BIAS_TILES];
    t.b.a = t.b.drop.a = a;
    t.b.drop.work = t.work = &work;
    t.b.rows = SHARED_HALF();
    t.b.rows_grad = t.b.rows + ROW_BLOCK;
    t.keys = t.b.rows + 2 * ROW_BLOCK;
    t.values = t.keys + BIAS_TILES * OPERAND;
    backward_scales(&t.b, a);
    t.row0 = row0;
    t.column = column;
    work.h = h;
    UNROLL
    for (u32 g = 0; g < BIAS_TILES; g++) {
        scores_clear(&sum[g]);
        t.word[g][0] = t.word[g][1] = 0;
    }
    u32 b = (u32)((u64)a->batch * chunk / a->bias_chunks);
    u32 end = (u32)((u64)a->batch * (chunk + 1) / a->bias_chunks);
    NO_UNROLL
    for (end = bias_words(&t) ? end : b; b < end; b++) {
        float lse[2], delta[2], delta_correction[2];
        work.b = b;
        work_item_sequence(&work, a, 0);
        if (row0 >= work.length || column >= work.length)
            continue;
        bias_bring(&t);
        bias_load_delta(&t, lse, delta, delta_correction);
        NO_UNROLL
        for (u32 g = 0; g < BIAS_TILES; g++) {
            bias_add_column_tile(&t, g, lse, delta, delta_correction, &sum[0]);
            bias_rotate(&t, sum);
        }
    }
    NO_UNROLL
    for (u32 g = 0; g < BIAS_TILES; g++) {
        bias_store(&t, a->bias_part + (u64)chunk * a->heads * n * n, column + g * TILE_COLS,
                   &sum[0]);
        bias_rotate(&t, sum);
    }
}

ENTRY_OF(attention_dx, THREADS, BIAS_BLOCKS)(ARGS a)
{
    const u32 n = a.forward.n;
    const u32 tall = (n + BLOCK_ROWS - 1) / BLOCK_ROWS;
    const u32 wide = (n + BIAS_COLUMNS - 1) / BIAS_COLUMNS;
    const u64 tiles = (u64)a.heads * tall * wide;
    NO_UNROLL
    for (u64 at = BLOCK; at < tiles * a.bias_chunks; at += BLOCKS) {
        u64 tile = at % tiles;
        u32 row = (u32)(tile / wide % tall), column = (u32)(tile % wide);
        bias_tile_gradient(&a, (u32)(tile / wide / tall), BLOCK_ROWS * row,
                           BIAS_COLUMNS * column, (u32)(at / tiles));
    }
}
