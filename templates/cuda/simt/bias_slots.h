/* SPDX-License-Identifier: Apache-2.0 */
/* The bias X of the entries that a thread holds. */
#ifndef MASKC_CUDA_SIMT_BIAS_SLOTS_H
#define MASKC_CUDA_SIMT_BIAS_SLOTS_H
#include "cuda/common/bias.h"
#include "cuda/simt/products.h"

/* X at place k, which the query sees. */
DEVICE float bias_slot(const struct abi_args *a, const struct work_item *work,
                       const struct column_tile *ct, u32 k)
{
    u32 column = slot_column(ct, slot_of(k, quad_lane()));
    return a->bias[bias_at(a, work->h, work->row, column)];
}

/* The score plus `x_scale` times X, if the bias is additive. */
DEVICE float bias_score(float score, float x_scale, const struct abi_args *a,
                        const struct work_item *work, const struct column_tile *ct, u32 k)
{
    return ADD_BIAS ? score + x_scale * bias_slot(a, work, ct, k) : score;
}

/* P or dP of queries times X, if the bias scales probabilities; entries that the row does not see become 0. */
DEVICE void bias_scale(struct slots *x, const struct abi_args *a, const struct work_item *work,
                       const struct column_tile *ct)
{
    UNROLL_BY(SLOTS_UNROLLED)
    for (u32 k = 0; SCALE_PROBS && k < SLOTS; k++, slots_rotate(x))
        x->at[0] = sees(ct, k) ? x->at[0] * bias_slot(a, work, ct, k) : 0;
}

#endif
