/* SPDX-License-Identifier: Apache-2.0 */
/* How a probability follows its score, and back: softmax's is an exponential, sparsegen's a line above tau. What
   every family shares. */
#ifndef MASKC_CUDA_COMMON_TRANSFORM_H
#define MASKC_CUDA_COMMON_TRANSFORM_H
#include "cuda/common/device.h"
#include "kernel_config.h"

/* What a probability on sparsegen's support grows by with its score; 1 for softmax. */
DEVICE float sparsegen_scale(const struct abi_args *a)
{
    return TRANSFORM == ABI_SPARSEGEN ? reciprocal_of(1 - a->lambda) : 1;
}

DEVICE float sparsegen_p(float score, float tau, float p_scale)
{
    return score > tau ? (score - tau) * p_scale : 0;
}

/* d loss / d score of an entry with probability p; of sparsegen times 1 - lambda, which the sums are then
   divided by. `state` is delta, or the mean. */
DEVICE float score_gradient(float p, float dp, float delta)
{
    if (TRANSFORM == ABI_SPARSEGEN)
        return p > 0 ? dp - delta : 0;
    return p * (dp - delta);
}

/* What sums of score gradients are multiplied by. */
DEVICE float ds_scale(const struct abi_args *a)
{
    return a->scale * sparsegen_scale(a);
}

#endif
