/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/run/pace.h"

void pace_keep(struct pace *p, const struct step_result *s, double flops, double seconds)
{
    const double stays = 0.98;
    p->loss = stays * p->loss + s->loss;
    for (uint32_t k = 0; k < TARGETS_MOST; k++)
        p->mean[k] = stays * p->mean[k] + s->mean[k];
    p->tokens = stays * p->tokens + (double)s->tokens;
    p->flops = stays * p->flops + flops;
    p->seconds = stays * p->seconds + seconds;
    p->weight = stays * p->weight + 1;
    p->steps++;
}

void pace_means(const struct pace *p, double ret[TARGETS_MOST])
{
    for (uint32_t k = 0; k < TARGETS_MOST; k++)
        ret[k] = p->mean[k] / p->weight;
}
