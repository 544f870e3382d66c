/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/cpu/ops/encoder_ops.h"

extern const struct cpu_encoder_ops encoder_ops_v2, encoder_ops_v3, encoder_ops_v4,
    encoder_ops_v4_bf16;

const struct cpu_encoder_ops *cpu_encoder_ops(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return __builtin_cpu_supports("avx512bf16") ? &encoder_ops_v4_bf16 : &encoder_ops_v4;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return &encoder_ops_v3;
    return &encoder_ops_v2;
}
