/* SPDX-License-Identifier: Apache-2.0 */
/* The two transforms, softmax and sparsegen, where all families compute them alike: P of sparsegen, dS from P
   and dP, and the scale of dS. */
#ifndef MASKC_CUDA_COMMON_TRANSFORM_H
#define MASKC_CUDA_COMMON_TRANSFORM_H
#include "cuda/common/numbers.h"
#include "kernel_config.h"

/* 1 / (1 - lambda), by which P of sparsegen grows with the score; 1 for softmax. */
DEVICE float sparsegen_scale(const struct abi_args *a)
{
    return TRANSFORM == ABI_SPARSEGEN ? reciprocal_of(1 - a->lambda) : 1;
}

/* NaN for NaN. */
DEVICE float sparsegen_p(float score, float tau, float p_scale)
{
    return score <= tau ? 0 : (score - tau) * p_scale;
}

/* tau from the row's largest score and the threshold relative to it: -inf where the row sees nothing, NaN where a score
   is NaN or +inf. */
DEVICE float tau_of(float row_max, float threshold)
{
    return row_max == NEGATIVE_INFINITY ? row_max : row_max + (threshold + 0 * row_max);
}

/* dS of an entry; for sparsegen without the factor 1 / (1 - lambda), which ds_scale applies to the sums. */
DEVICE float score_gradient(float p, float dp, float delta)
{
    if (TRANSFORM == ABI_SPARSEGEN)
        return p > 0 ? dp - delta : 0;
    return p * (dp - delta);
}

/* The factor of sums of dS: dQ and dK. */
DEVICE float ds_scale(const struct abi_args *a)
{
    return a->scale * sparsegen_scale(a);
}

#endif
