/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gen/formula_mask.h"
#include "masks/base/memory.h"
#include <stdlib.h>

struct mask *formula_mask(uint32_t n, bool (*sees)(uint32_t n, uint32_t i, uint32_t j))
{
    uint8_t *bytes = memory_new((size_t)n * n, 1);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            bytes[(size_t)i * n + j] = sees(n, i, j);
    struct pattern *p = pattern_from_bytes(bytes, n, n);
    free(bytes);
    return mask_new(1, 1, &p, "test");
}

bool formula_dense(uint32_t n, uint32_t i, uint32_t j)
{
    return i < n && j < n;
}

bool formula_causal(uint32_t n, uint32_t i, uint32_t j)
{
    return j <= i && i < n;
}
