/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/cpu/ops/row_level.h"
#include "runtime/device/machine.h"

static const char *const targets[ROW_LEVELS] = {
    [ROW_V2] = "x86-64-v2",
    [ROW_V3] = "x86-64-v3",
    [ROW_V4] = "x86-64-v4",
    [ROW_V4_BF16] = "x86-64-bf16",
};

bool row_level_runs(enum row_level l)
{
    return l == ROW_V2 || machine_runs(targets[l]);
}

enum row_level row_level_best(void)
{
    enum row_level l = ROW_LEVELS - 1;
    while (!row_level_runs(l))
        l--;
    return l;
}
