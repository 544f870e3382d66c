/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/graph/grid.h"

struct grid_span grid_span(const struct grid_axis *a, uint32_t position)
{
    uint32_t residue = position % a->dilation, at = position / a->dilation;
    uint32_t cells = (a->size - residue + a->dilation - 1) / a->dilation;
    uint32_t half = a->kernel / 2, first = at > half ? at - half : 0, count = a->kernel;
    if (a->causal) {
        count = at + 1 < count ? at + 1 : count;
        first = at + 1 - count;
    } else if (first > cells - count) {
        first = cells - count;
    }
    return (struct grid_span){residue + first * a->dilation, a->dilation, count};
}

void grid_row(const struct grid *g, uint32_t i,
              void (*add)(void *context, uint32_t begin, uint32_t end), void *context)
{
    const struct grid_axis *axis = g->axis;
    struct grid_span x = grid_span(&axis[0], i / axis[2].size / axis[1].size);
    struct grid_span y = grid_span(&axis[1], i / axis[2].size % axis[1].size);
    struct grid_span z = grid_span(&axis[2], i % axis[2].size);
    uint32_t together = z.step == 1 ? z.count : 1;
    for (uint32_t a = 0; a < x.count; a++)
        for (uint32_t b = 0; b < y.count; b++) {
            uint32_t line = (x.first + a * x.step) * axis[1].size + y.first + b * y.step;
            for (uint32_t c = 0; c < z.count; c += together) {
                uint32_t begin = line * axis[2].size + z.first + c * z.step;
                add(context, begin, begin + together);
            }
        }
}
