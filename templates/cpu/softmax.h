/* SPDX-License-Identifier: Apache-2.0 */
/* The main loop of the forward pass: online softmax in base 2 over the blocks of a row block.
     for each block of columns J
         S = Q K_J^T * scale, -inf outside the mask          compute_qk (with the bias), apply_mask
         m' = max(m, rowmax S),  alpha = 2^(m - m')          online_softmax
         P = 2^(S - m'),  l = alpha l + rowsum P
         O = alpha O + P V_J                                 compute_pv, after dropout
     O / l,  LSE = ln 2 (m + log2 l)                         epilogue (forward.h)
   A matrix unit computes S, m and P (all but O) two column tiles at a time, with another m: matrix/fused_softmax.h.
   A row without an active entry keeps m = -inf, l = 0 and O = 0. */
#ifndef MASKC_CPU_SOFTMAX_H
#define MASKC_CPU_SOFTMAX_H
#include "cpu/p_rounded.h"
#include "cpu/scores.h"
#include "cpu/softmax_rows.h"

#if MATRIX
#include "cpu/matrix/fused_softmax.h"
#include "cpu/matrix/softmax.h"
#else
INLINE int panels_alone(const struct row_block *t, const struct block *b)
{
    (void)t, (void)b;
    return 0;
}

INLINE int fused_softmax(const struct row_block *t, struct block *b)
{
    (void)t, (void)b;
    return 0;
}

/* Rows first .. first + 3: where the maximum grew, rescales l and O by alpha. */
static void rows_rescale(struct row_block_memory *m, u32 first, quad old, quad now)
{
    for (u32 k = 0; k < 4; k++) {
        if (!(now[k] > old[k]))
            continue;
        float alpha = exp2_one(old[k] - now[k]);
        m->total[first + k] *= alpha;
        sums_scale(m->sums[0][first + k], alpha);
    }
}

/* Four rows at a time, since they share the reductions across lanes. The last row fills up the last four; those
   numbers are never used. */
static void online_softmax(struct row_block *t, struct block *b, int first_block)
{
    struct row_block_memory *m = t->m;
    const u32 rows = t->rows, cols = b->cols, prefetch = prefetch_share(t->prefetch, rows);
    for (u32 first = 0; first < rows; first += 4) {
        vec x[4], sum[4] = {{0}};
        for (u32 k = 0; k < 4; k++)
            x[k] = scores_max(b->score[first + k < rows ? first + k : rows - 1], cols);
        quad old = *(quad_at *)(m->row_max + first);
        quad now = larger_quad(max4(x[0], x[1], x[2], x[3]), old);
        if (!first_block)
            rows_rescale(m, first, old, now);
        *(quad_at *)(m->row_max + first) = now;
        quad base = (quad)((quad_mask)now & ~(quad_mask)(now == -INFINITY_F));
        for (u32 k = 0; k < 4 && first + k < rows; k++) {
            prefetch_rows(t->prefetch, prefetch);
            sum[k] = row_exp2(b->score[first + k], cols, base[k]);
        }
        *(quad_at *)(m->total + first) += sum4(sum[0], sum[1], sum[2], sum[3]);
    }
}

#endif

/* m and l to LSE (in `offset`) and 1 / l. Rows without an active entry get -inf and 0. */
static void softmax_lse(struct row_block_memory *m)
{
    for (u32 r = 0; r < BLOCK_ROWS; r += LANES) {
        vec l = load(m->total + r), one = splat(1);
        ivec some = ~(ivec)(l <= 0.0f); /* true for NaN, which must stay visible */
        vec lse = load(m->row_max + r) * LN_2 + natural_log(pick(some, l, one));
        store(m->offset + r, pick(some, lse, splat(-INFINITY_F)));
        store(m->total + r, pick_or_zero(some, one / pick(some, l, one)));
    }
}

/* Merged rows start with the m and l of their other item. */
static void softmax_begin(const struct row_block *t)
{
    for (u32 r = 0; r < BLOCK_ROWS; r++) {
        const float *left = row_merged(t, r) ? partial_numbers(t, r) : 0;
        t->m->row_max[r] = left ? left[0] : -INFINITY_F;
        t->m->total[r] = left ? left[1] : 0;
    }
}

/* The first steps of the loop, block by block; then what a bias and dropout do to P. */
static void unfused_softmax(struct row_block *t, struct block *b, int first)
{
    compute_qk(t, b);
    online_softmax(t, b, first);
    block_scale(t, b);
    if (dropping(t))
        block_drop(t, b);
    else if (BIAS == ABI_BIAS_SCALE)
        p_round(t, b);
}

static void softmax_forward(struct row_block *t)
{
    struct block *b = t->blocks;
    softmax_begin(t);
    partial_prefetch(t, 1);
    for (int first = !t->item->merge[0]; block_next(t, b); first = 0) {
        if (!fused_softmax(t, b))
            unfused_softmax(t, b, first);
        compute_pv(t, b);
    }
    if (!t->item->split)
        softmax_lse(t->m);
}

#endif
