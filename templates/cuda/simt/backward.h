/* SPDX-License-Identifier: Apache-2.0 */
/* SIMT family, backward: what dQ (queries.cu, over the forward plan) and dK, dV (keys.cu, over the transposed
   one) share. Both recompute P from LSE (or tau).

       softmax     P = exp(S - LSE)               dS = P (dP - delta),  delta = sum of P dP over the row
       sparsegen   P = (S - tau) / (1 - lambda)   dS = (dP - delta) / (1 - lambda) on the support, delta = mean of dP there

   dQ stores delta in args.delta for dK. */
#ifndef MASKC_CUDA_SIMT_BACKWARD_H
#define MASKC_CUDA_SIMT_BACKWARD_H
#include "cuda/common/transform.h"
#include "cuda/simt/dropout.h"
#include "cuda/simt/pieces.h"

/* `p_scale` is 1 / (1 - lambda). With a bias LSE may be -inf: all the row's scores were. */
DEVICE float probability(float score, float lse, float p_scale)
{
    if (TRANSFORM == ABI_SPARSEGEN)
        return sparsegen_p(score, lse, p_scale);
    if (ADD_BIAS && lse == NEGATIVE_INFINITY)
        return 0;
    return exp2_of((score - lse) * LOG2_E);
}

/* The factor of dP - delta in a query's dS: P; for sparsegen 1 on the support, the scale being applied to dQ. */
DEVICE float query_p(float score, float lse)
{
    if (TRANSFORM == ABI_SPARSEGEN)
        return score > lse ? 1 : 0;
    return probability(score, lse, 0);
}

/* rowsum(dO o O) of the thread's row. */
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

/* Where both dot products go. */
struct both_slots {
    struct slots *by_a, *by_b;
};

/* Dot products of the block's rows with the columns of `a`, then with those of `b`, which stay in tile 2. Tile
   `last` has the rows for b; the other of tiles 0 and 1 has those for a. A loop, since unrolled code compiles
   slowly. */
DEVICE void both_dots(struct both_slots to, const struct abi_tensor *a,
                      const struct abi_tensor *b, u32 last, const struct column_tile *ct,
                      const struct work_item *work)
{
    slots_clear(to.by_b);
    NO_UNROLL
    for (u32 pass = 0; pass < 2; pass++) {
        struct view v = view_recomputed(pass ? b : a, work);
        *to.by_a = *to.by_b;
        fetch(shared_tile(2), &v, ct, work);
        dots(to.by_b, shared_tile(pass ? last : 1 - last), shared_tile(2), ct, &v);
    }
}

#endif
