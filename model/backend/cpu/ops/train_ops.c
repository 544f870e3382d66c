/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/cpu/ops/train_ops.h"

extern const struct cpu_train_ops train_ops_v2, train_ops_v3, train_ops_v4, train_ops_v4_bf16;

const struct cpu_train_ops *cpu_train_ops(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return __builtin_cpu_supports("avx512bf16") ? &train_ops_v4_bf16 : &train_ops_v4;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return &train_ops_v3;
    return &train_ops_v2;
}
