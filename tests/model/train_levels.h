/* SPDX-License-Identifier: Apache-2.0 */
/* The levels of train_ops.h that this CPU runs, and numbers to try them with. */
#pragma once
#include "model/backend/cpu/ops/bf16_rows.h"
#include "model/backend/cpu/ops/train_ops.h"
#include <stdbool.h>
#include <stdlib.h>

struct train_levels {
    const struct cpu_train_ops *list[ROW_LEVELS];
    int count;
};

static inline struct train_levels train_levels_find(void)
{
    struct train_levels ret = {0};
    for (int l = 0; l < ROW_LEVELS; l++)
        if (row_level_runs((enum row_level)l))
            ret.list[ret.count++] = cpu_train_ops_at((enum row_level)l);
    return ret;
}

/* In [-4, 4). */
static inline float train_number(uint64_t k)
{
    uint64_t x = (k + 1) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
    return (float)(x >> 40) / (1 << 21) - 4;
}

static inline float *train_numbers(uint64_t count, uint64_t seed)
{
    float *ret = malloc(count * sizeof *ret);
    for (uint64_t k = 0; k < count; k++)
        ret[k] = train_number(k + seed * 1000003);
    return ret;
}

static inline uint16_t *train_halves(const float *x, uint64_t count)
{
    uint16_t *ret = malloc(count * sizeof *ret);
    for (uint64_t k = 0; k < count; k++)
        ret[k] = to_bf16(x[k]);
    return ret;
}

/* The same number, or neighbours among the bf16. */
static inline bool train_neighbours(uint16_t a, uint16_t b)
{
    int x = a & 0x8000 ? -(a & 0x7fff) : a, y = b & 0x8000 ? -(b & 0x7fff) : b;
    return abs(x - y) <= 1;
}
