/* SPDX-License-Identifier: Apache-2.0 */
/* Online softmax of a whole block beside a matrix unit: for blocks with column lists or a bias, and for
   those whose sums were too large for fused_softmax(). */
#ifndef MASKC_CPU_MATRIX_SOFTMAX_H
#define MASKC_CPU_MATRIX_SOFTMAX_H
#include "cpu/dropout.h"
#include "cpu/p_rounded.h"
#include "cpu/softmax_rows.h"

/* Maxima of all rows come first: the exponentials of a row then wait for nothing. */
static void online_softmax(struct row_block *t, struct block *b, int first_block)
{
    struct row_block_memory *m = t->m;
    const u32 rows = t->rows, cols = b->cols, prefetch = prefetch_share(t->prefetch, rows);
    const int floats = b->lists || dropping(t) || BIAS == ABI_BIAS_SCALE;
    float base[BLOCK_ROWS], alpha[BLOCK_ROWS];
    vec sum[BLOCK_ROWS];
    u32 grown = 0;
    for (u32 first = 0; first < BLOCK_ROWS; first += 4) {
        quad now = *(quad_at *)(m->row_max + first);
        if (first < rows) {
            vec x[4];
            for (u32 k = 0; k < 4; k++)
                x[k] = scores_max(b->score[first + k < rows ? first + k : rows - 1], cols);
            now = larger_quad(max4(x[0], x[1], x[2], x[3]) * t->softmax_scale, now);
        }
        *(quad_at *)(base + first) = now;
    }
    for (u32 r = 0; r < BLOCK_ROWS; r += LANES) {
        vec old = load(m->row_max + r), now = load(base + r);
        ivec some = (ivec)(now != splat(-INFINITY_F));
        vec x = pick_or_zero(some, now), rescale = exp2_half(old - x);
        store(m->row_max + r, now);
        store(base + r, x);
        store(alpha + r, rescale);
        store(m->total + r, load(m->total + r) * rescale);
        grown |= lanes_larger(now, old) << r;
    }
    if (!first_block)
        for (; grown; grown &= grown - 1) {
            u32 r = (u32)__builtin_ctz(grown);
            sums_scale(m->sums[0][r], alpha[r]);
        }
    for (u32 r = 0; r < rows; r++) {
        prefetch_rows(t->prefetch, prefetch);
        sum[r] = row_exp2_rounded(b, r, base[r], t->softmax_scale, floats);
    }
    for (u32 r = rows; r % 4; r++)
        sum[r] = splat(0);
    for (u32 first = 0; first < rows; first += 4)
        *(quad_at *)(m->total + first) +=
            sum4(sum[first], sum[first + 1], sum[first + 2], sum[first + 3]);
}

#endif
