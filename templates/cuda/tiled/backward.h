/* SPDX-License-Identifier: Apache-2.0 */
/* Backward over a row block: what dQ (queries.cu) and dK, dV (keys.cu) share. Both recompute P from LSE (or
   tau).

       softmax     P = 2^(S - LSE)                dS = P (dP - delta),  delta = sum of P dP over the row
       sparsegen   P = (S - tau) / (1 - lambda)   dS = (dP - delta) / (1 - lambda) on the support, delta = mean of dP there */
#ifndef MASKC_CUDA_TILED_BACKWARD_H
#define MASKC_CUDA_TILED_BACKWARD_H
#include "cuda/tiled/dropout.h"

enum {
    BACKWARD_BUFFERS = TILED_BUFFERS(HEAD_DIM),
    BACKWARD_HALVES = 2 * ROW_BLOCK + 2 * BACKWARD_BUFFERS * OPERAND + 2 * BACKWARD_NOTES,
    BOTH_AT_ONCE = STEPS <= 8, /* dK and dV in registers together, else a pass for each */
    /* dQ in one pass: delta of softmax can be estimated before, that of sparsegen cannot. */
    ONE_PASS = BOTH_AT_ONCE && TRANSFORM == ABI_SOFTMAX,
    OWN_IN_REGISTERS = ALL_APART && STEPS <= 4, /* the row block's rows: registers suffice */
};

/* With two row tiles the sums of dQ and of dK and dV do not fit the registers. */
typedef char one_row_tile_backward[ROW_TILES == 1 ? 1 : -1];

typedef char backward_shared_is_as_planned[2 * BACKWARD_HALVES ==
                                                       TILED_BACKWARD_BYTES(BLOCK_ROWS, THREADS,
                                                                            HEAD_DIM) &&
                                                   BACKWARD_SHARED >= 2 * BACKWARD_HALVES
                                               ? 1
                                               : -1];

struct backward {
    const struct abi_args *a;
    const struct work_item *work;
    struct stream stream;
    struct drop drop;
    half_t *rows, *rows_grad; /* shared: the row block's rows; Q and dO, or K and V */
    struct rows own[2];       /* the same, of the warp, with OWN_IN_REGISTERS */
    float scale;              /* to base 2 for softmax */
    float
        softmax_scale; /* what is left to multiply a score by: 1 where a bias was added to scaled scores */
};

DEVICE void backward_scales(struct backward *b, const struct abi_args *a)
{
    const float scale = float_of(opt_barrier(bits_of(a->scale)));
    b->scale = TRANSFORM == ABI_SPARSEGEN ? scale : scale * LOG2_E;
    b->softmax_scale = ADD_BIAS ? 1 : b->scale;
}

/* Starts the copies of the row block's two operands. Returns a bit for each of the warp's rows that take part. */
DEVICE u32 backward_start(struct backward *b, const struct abi_args *a,
                          const struct work_item *work, const struct ahead *ahead,
                          const struct abi_tensor *rows, const struct abi_tensor *rows_grad)
{
    struct view first = view_of(rows, work), second = view_of(rows_grad, work);
    b->a = a;
    b->work = work;
    b->drop.a = a;
    b->drop.work = work;
    b->rows = SHARED_HALF();
    b->rows_grad = b->rows + ROW_BLOCK;
    b->stream.buffer = b->rows + 2 * ROW_BLOCK;
    b->stream.buffers = BACKWARD_BUFFERS;
    backward_scales(b, a);
    SYNC();
    work_item_save(work, ahead, stream_notes(&b->stream));
    const u32 part = warp_rows(work, work->length);
    NO_UNROLL
    for (u32 k = 0; k < 2; k++) {
        struct view v = {k ? second.data : first.data, k ? second.row : first.row};
        copy_row_block(b->rows + k * ROW_BLOCK, &v, work, warp_rows(work, work->length));
    }
    copy_async_commit();
    return part;
}

/* In the first iteration, behind stream_wait_for_rows: rows to registers, with OWN_IN_REGISTERS. */
DEVICE void backward_load_own(struct backward *b)
{
    const u32 at = THREAD / 32 * 16 * PITCH;
    UNROLL
    for (u32 k = 0; k < STEPS && OWN_IN_REGISTERS; k++) {
        load_rows(&b->own[0].at[k], b->rows + at, k);
        load_rows(&b->own[1].at[k], b->rows_grad + at, k);
    }
}

/* S and dP of a column tile, or S alone and zeros. */
DEVICE void backward_s_dp(const struct backward *b, struct scores s[2], u32 both, u64 live)
{
    const u32 at = THREAD / 32 * 16 * PITCH;
    const half_t *rows[2] = {b->rows + at, b->rows_grad + at};
    const half_t *columns[2] = {stream_operand(&b->stream, 0), stream_operand(&b->stream, 1)};
    if (OWN_IN_REGISTERS && both) {
        scores_of(&s[0], &b->own[0], columns[0], live);
        scores_of(&s[1], &b->own[1], columns[1], live);
        return;
    }
    scores_clear(&s[1]);
    if (both)
        scores_of_both(s, rows, columns, live);
    else
        scores_of_shared(&s[0], rows[0], 0, columns[0], live);
}

/* ---- entries of a column tile, a fragment at a time; with a bias the code is long and stays a loop ---- */

enum { FRAGMENTS_UNROLLED = BIAS ? BIAS_UNROLLED : FRAGMENTS };

/* X of the lane's entries of fragment f. An additive bias is added to their scores, which are scaled by that. */
DEVICE void backward_bias(const struct backward *b, const struct seen *seen, u32 f,
                          u32 rows_are_keys, struct frag_c *scores, struct frag_c *bias)
{
    const float x_scale = TRANSFORM == ABI_SPARSEGEN ? 1 : LOG2_E;
    if (!BIAS)
        return;
    bias_entries(bias, b->a, b->work, &b->stream.now, seen, rows_are_keys, f);
    UNROLL
    for (u32 k = 0; ADD_BIAS && k < 4; k++)
        scores->x[k] = scores->x[k] * b->scale + bias->x[k] * x_scale;
}

/* `lse` is scaled as scores are (scaled_lse); `p_scale` is 1 / (1 - lambda). */
DEVICE float probability(const struct backward *b, float dot, float lse, float p_scale)
{
    if (TRANSFORM == ABI_SPARSEGEN)
        return sparsegen_p(dot * b->softmax_scale, lse, p_scale);
    return exp2_of(dot * b->softmax_scale - lse);
}

/* The factor of dP - delta in a query's dS: P; for sparsegen 1 on the support, the scale being applied to dQ. */
DEVICE float query_p(const struct backward *b, float dot, float lse)
{
    if (TRANSFORM == ABI_SPARSEGEN)
        return dot * b->softmax_scale > lse ? 1 : 0;
    return probability(b, dot, lse, 0);
}

#endif
