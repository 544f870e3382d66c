/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/cpu/ops/train_ops.h"

extern const struct cpu_train_ops train_ops_v2, train_ops_v3, train_ops_v4, train_ops_v4_bf16;

const struct cpu_train_ops *cpu_train_ops_at(enum row_level l)
{
    static const struct cpu_train_ops *const tables[ROW_LEVELS] = {
        [ROW_V2] = &train_ops_v2,
        [ROW_V3] = &train_ops_v3,
        [ROW_V4] = &train_ops_v4,
        [ROW_V4_BF16] = &train_ops_v4_bf16,
    };
    return tables[l];
}

const struct cpu_train_ops *cpu_train_ops(void)
{
    return cpu_train_ops_at(row_level_best());
}
