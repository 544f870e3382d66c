/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel shape a pass takes: that with the least predicted time. */
#include "gen/steps/steps.h"
#include <math.h>

/* Builds the steps by a shape; returns their time over all layers. */
static double try_shape(const struct step_source *s, const struct step_launch *l,
                        const struct step_shape *shape, struct plan_steps *ret)
{
    double sum = 0;
    steps_build(s, shape, ret);
    for (uint32_t layer = 0; layer < s->layers; layer++)
        sum += steps_seconds(l, shape, ret, layer);
    return sum;
}

/* Each try drops the patterns of the one before, so that only the last one's tables can stay. */
uint32_t steps_choose(const struct step_source *s, const struct step_launch *l,
                      const struct step_shape *const *shapes, uint32_t count,
                      struct plan_steps *ret)
{
    const uint64_t patterns = s->pass->n_patterns;
    uint32_t best = 0;
    double least = INFINITY;
    for (uint32_t k = 0; k < count; k++) {
        steps_finish(ret);
        s->pass->n_patterns = patterns;
        const double seconds = try_shape(s, l, shapes[k], ret);
        if (seconds >= least)
            continue;
        least = seconds;
        best = k;
    }
    if (best + 1 < count) {
        steps_finish(ret);
        s->pass->n_patterns = patterns;
        steps_build(s, shapes[best], ret);
    }
    return best;
}
