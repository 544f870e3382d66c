/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gen/steps/measured_masks.h"

bool in_window(u32 i, u32 j, u32 width)
{
    return i < j ? j - i <= width : i - j <= width;
}

bool is_dense(u32 i, u32 j)
{
    (void)i;
    (void)j;
    return true;
}

bool is_causal(u32 i, u32 j)
{
    return j <= i;
}

bool is_window_256(u32 i, u32 j)
{
    return in_window(i, j, 256);
}

bool is_blocks_256(u32 i, u32 j)
{
    return i / 256 == j / 256;
}

bool is_window_64(u32 i, u32 j)
{
    return in_window(i, j, 64) || j < 2;
}

bool is_longformer(u32 i, u32 j)
{
    return in_window(i, j, 64) || j < 2 || i < 2;
}

/* One in ten tiles of 64 x 32, half of them under a pattern. */
bool is_scattered(u32 i, u32 j)
{
    const u32 x = ((i / 64) * 2654435761u ^ (j / 32) * 2246822519u) * 2654435761u >> 8;
    const u32 y = (i * 2654435761u ^ j * 2246822519u) * 3266489917u >> 13;
    return x % 10 == 0 && (x % 20 || y & 1);
}

/* A band, and 50 columns for each 128 rows, of which a row sees three in four. */
bool is_gathered(u32 i, u32 j)
{
    const u32 x = ((i / 128) * 2654435761u ^ j * 2246822519u) * 2654435761u >> 8;
    const u32 y = (i * 2654435761u ^ j * 2246822519u) * 3266489917u >> 13;
    return (j <= i && i - j <= 30) || (x % (8192 / 50) == 0 && y % 4);
}

struct mask *measured_mask(u32 n, bool (*has)(u32, u32))
{
    struct pattern *p = pattern_new(n), *given[12];
    for (u32 i = 0; i < n; i++) {
        for (u32 j = 0, end; j < n; j = end + 1) {
            for (end = j; end < n && has(i, end);)
                end++;
            if (end > j)
                pattern_add(p, i, j, end);
        }
        pattern_row(p, i);
    }
    p = pattern_finish(p);
    for (u32 h = 0; h < 12; h++)
        given[h] = p;
    return mask_new(1, 12, given, "formula");
}
