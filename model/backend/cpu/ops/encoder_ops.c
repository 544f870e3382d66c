/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/cpu/ops/encoder_ops.h"

extern const struct cpu_encoder_ops encoder_ops_v2, encoder_ops_v3, encoder_ops_v4,
    encoder_ops_v4_bf16;

const struct cpu_encoder_ops *cpu_encoder_ops_at(enum row_level l)
{
    static const struct cpu_encoder_ops *const tables[ROW_LEVELS] = {
        [ROW_V2] = &encoder_ops_v2,
        [ROW_V3] = &encoder_ops_v3,
        [ROW_V4] = &encoder_ops_v4,
        [ROW_V4_BF16] = &encoder_ops_v4_bf16,
    };
    return tables[l];
}

const struct cpu_encoder_ops *cpu_encoder_ops(void)
{
    return cpu_encoder_ops_at(row_level_best());
}
