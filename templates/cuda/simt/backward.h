/* SPDX-License-Identifier: Apache-2.0 */
/* The backward pass: dQ over the forward plan, then dK and dV over the transposed one. Both
   recompute P from the row's LSE (or tau). For softmax dS = P (dP - delta), where delta is the
   sum of P dP, which is dO . O; for sparsegen dS = (dP - mean of dP over the support) / (1 -
   lambda) on the support. dQ leaves delta, or the mean, in args.delta for dK. */
#ifndef MASKC_CUDA_SIMT_BACKWARD_H
#define MASKC_CUDA_SIMT_BACKWARD_H
#include "cuda/common/transform.h"
#include "cuda/simt/dropout.h"
#include "cuda/simt/pieces.h"

/* `slope` is of sparsegen. A bias may be -inf, and be that for a whole row. */
DEVICE float probability(float score, float lse, float p_scale)
{
    if (TRANSFORM == ABI_SPARSEGEN)
        return sparsegen_p(score, lse, p_scale);
    if (ADD_BIAS && lse == NEGATIVE_INFINITY)
        return 0;
    return exp2_of((score - lse) * LOG2_E);
}

/* What dP counts for in a query's slopes: P, for sparsegen 1 on the support. */
DEVICE float query_p(float score, float lse)
{
    if (TRANSFORM == ABI_SPARSEGEN)
        return score > lse ? 1 : 0;
    return probability(score, lse, 0);
}

/* dO . O of the thread's row. */
DEVICE float row_delta(const struct abi_args *a, const struct work_item *work)
{
    struct view o = view_of(&a->o, work), d_o = view_of(&a->d_o, work);
    float sum = 0;
    UNROLL
    for (u32 k = 0; k < CHUNKS; k++) {
        u32 d = chunk_of(k);
        if (work->active && d < HEAD_DIM)
            sum = dot4(sum, load4(&o, work->row, d), load4(&d_o, work->row, d));
    }
    return quad_sum(sum);
}

/* Products of the job's rows with the group's columns of `a`, then of `b`, which are left in tile 2. Tile `last`
   has the rows that are multiplied by b, and of tiles 0 and 1 the other has a's. Both operands take turns with
   one text: what stands twice takes twice as long to compile. */
DEVICE void both_dots(struct slots *by_a, struct slots *by_b, const struct abi_tensor *a,
                      const struct abi_tensor *b, u32 last, const struct column_tile *ct,
                      const struct work_item *work)
{
    slots_clear(by_b);
    NO_UNROLL
    for (u32 pass = 0; pass < 2; pass++) {
        struct view v = view_recomputed(pass ? b : a, work);
        *by_a = *by_b;
        fetch(shared_tile(2), &v, ct, work);
        dots(by_b, shared_tile(pass ? last : 1 - last), shared_tile(2), ct, &v);
    }
}

#endif
