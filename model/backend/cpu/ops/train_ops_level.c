/* SPDX-License-Identifier: Apache-2.0 */
/* The table of train_ops.h for one level of x86-64, and its sums. */
#include "model/backend/cpu/ops/train_ops_level.h"

#define table AT_LEVEL(train_ops)
extern const struct cpu_train_ops table;

static void add_f32(uint64_t size, const float *x, float *sum)
{
#pragma omp simd
    for (uint64_t k = 0; k < size; k++)
        sum[k] += x[k];
}

static void columns_f32(uint32_t rows, uint32_t size, const float *x, float *sum)
{
    for (uint32_t r = 0; r < rows; r++, x += size)
        add_f32(size, x, sum);
}

static void columns_bf16(uint32_t rows, uint32_t size, const uint16_t *x, float *sum)
{
    for (uint32_t r = 0; r < rows; r++, x += size)
#pragma omp simd
        for (uint32_t k = 0; k < size; k++)
            sum[k] += from_bf16(x[k]);
}

const struct cpu_train_ops table = {
    .drop_f32 = train_drop_f32,
    .drop_bf16 = train_drop_bf16,
    .norm_f32 = train_norm_f32,
    .norm_bf16 = train_norm_bf16,
    .norm_back_f32 = train_norm_back_f32,
    .norm_back_bf16 = train_norm_back_bf16,
    .activate_f32 = train_activate_f32,
    .activate_bf16 = train_activate_bf16,
    .activate_back_f32 = train_activate_back_f32,
    .activate_back_bf16 = train_activate_back_bf16,
    .reactivate_bf16 = train_reactivate_bf16,
    .columns_f32 = columns_f32,
    .columns_bf16 = columns_bf16,
    .add_f32 = add_f32,
    .cross_entropy_f32 = train_cross_entropy_f32,
    .cross_entropy_bf16 = train_cross_entropy_bf16,
};
