/* SPDX-License-Identifier: Apache-2.0 */
/* A bias X, learnt beside the mask: added to scores (ADD_BIAS) or multiplied to probabilities (SCALE_PROBS). It
   is read where the mask is tested; its entries outside the mask are ignored. This file is what both families
   share. */
#ifndef MASKC_CUDA_COMMON_BIAS_H
#define MASKC_CUDA_COMMON_BIAS_H
#include "cuda/common/device.h"
#include "kernel_config.h"

enum { ADD_BIAS = BIAS == ABI_BIAS_ADD, SCALE_PROBS = BIAS == ABI_BIAS_SCALE };

/* Unrolled rounds of Philox: with a bias there is much other code. */
enum { PHILOX_ROUNDS_UNROLLED = BIAS && HEAD_DIM <= 128 ? 2 : 10 };

/* Index of query i, key j: [heads][n][n], n being the mask's, whatever the sequence's length. */
DEVICE u64 bias_at(const struct abi_args *a, u32 h, u32 i, u32 j)
{
    const u32 n = a->forward.n;
    return (u64)h * n * n + ((u64)i * n + j);
}

/* dX of an additive bias is dS itself, so rounding in delta shows where a row has few keys; with one key dX is
   0. A bias therefore keeps a second number for each row, behind all deltas: what delta lacks, or infinity for a
   row of one key. */
DEVICE float *bias_delta_correction(const struct abi_args *a, float *delta)
{
    return delta + (u64)a->batch * a->heads * a->delta_rows;
}

#endif
