/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy of rows of logits, a block each: as long as a vocabulary. Exponentials are taken twice rather than
   kept. */
#ifndef MASKC_TRAIN_OPS_LOSS_H
#define MASKC_TRAIN_OPS_LOSS_H
#include "train_ops/block.h"

/* e^x for x <= 0; what is below e^-87 is 0. */
DEVICE float exp_below(float x)
{
    return x < -87 ? 0 : exp_of(x);
}

DEVICE float row_largest(const float *x, u32 columns)
{
    float ret = float_of(0xff800000); /* -inf */
    NO_UNROLL
    for (u32 k = THREAD; k < columns; k += TRAIN_THREADS)
        ret = larger(x[k], ret);
    return block_largest(ret);
}

ENTRY_OF(train_cross_entropy, TRAIN_THREADS, 1)(ARGS a)
{
    NO_UNROLL
    for (u32 r = BLOCK; r < a.rows; r += BLOCKS) {
        const u64 at = (u64)r * a.columns;
        const float *x = (const float *)a.x + at;
        const u32 label = a.label[r];
        const u32 counts = label != TRAIN_NOWHERE;
        const float most = row_largest(x, a.columns), logit = counts ? x[label] : 0;
        float others = 0, before = 0;
        NO_UNROLL
        for (u32 k = THREAD; k < a.columns; k += TRAIN_THREADS) {
            others += k == label ? 0 : exp_below(x[k] - most);
            before += k < label && x[k] >= most ? 1 : 0;
        }
        others = block_sum(others);
        before = block_sum(
            before); /* all have read the label's logit, which may be overwritten now */
        const float sum = others + exp_below(logit - most),
                    factor = counts ? *a.weight / sum : 0;
        if (THREAD == 0) {
            a.loss[r].most = most;
            a.loss[r].sum = sum;
            a.loss[r].logit = logit;
            a.loss[r].right = logit >= most && before == 0 ? 1 : 0;
        }
        /* At the label p - 1 would lose digits near p = 1. */
        NO_UNROLL
        for (u32 k = THREAD; a.y && k < a.columns; k += TRAIN_THREADS)
            store1(a.y, at + k, WIDE,
                   k == label ? -others * factor : factor * exp_below(x[k] - most));
    }
}

#endif
