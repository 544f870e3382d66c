/* SPDX-License-Identifier: Apache-2.0 */
/* A bias X, learnt beside the compiled one: added to the scores (bias) or multiplied to the
   probabilities (scale). It is read where the mask is tested, and nobody looks at what it holds where
   a row does not see a column. This file is what both families share. */
#ifndef MASKC_CUDA_COMMON_BIAS_H
#define MASKC_CUDA_COMMON_BIAS_H
#include "cuda/common/device.h"
#include "kernel_config.h"

enum { ADD_BIAS = BIAS == ABI_BIAS_ADD, SCALE_PROBS = BIAS == ABI_BIAS_SCALE };

/* Rounds of a draw that stand side by side in the text: with a bias it is long without them. */
enum { PHILOX_ROUNDS_UNROLLED = BIAS && HEAD_DIM <= 128 ? 2 : 10 };

/* Query i, key j: [heads][n][n], n being the mask's, whatever the sequence's length. */
DEVICE u64 bias_at(const struct abi_args *a, u32 h, u32 i, u32 j)
{
    const u32 n = a->forward.n;
    return (u64)h * n * n + ((u64)i * n + j);
}

/* dX of a bias is dS itself, and nothing hides how a state was rounded where a row sees one key: that
   has no gradient at all. So a bias has a second number for each row, which stands behind the state: what
   the state lacks, or infinity for a row of one key. */
DEVICE float *bias_delta_correction(const struct abi_args *a, float *delta)
{
    return delta + (u64)a->batch * a->heads * a->delta_rows;
}

#endif
