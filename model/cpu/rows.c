/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cpu/rows.h"

extern const struct row_functions rows_v2, rows_v3, rows_v4, rows_v4_bf16;

const struct row_functions *rows_functions(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return __builtin_cpu_supports("avx512bf16") ? &rows_v4_bf16 : &rows_v4;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return &rows_v3;
    return &rows_v2;
}
