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

/* ---- how far ---- */

double run_share(const struct run *r)
{
    const struct run_options *o = &r->options;
    const double share = o->minutes > 0
                             ? r->facts.elapsed / (60 * o->minutes)
                             : (double)r->facts.step / (double)r->trainer.schedule.steps;
    return share < 1 ? share : 1;
}

bool run_is_done(const struct run *r)
{
    return r->options.minutes > 0 ? r->facts.elapsed >= 60 * r->options.minutes
                                  : r->facts.step >= r->trainer.schedule.steps;
}

/* With --minutes time takes the place of steps, in millionths of the run; a warm-up in steps stays one. */
double run_rate(const struct run *r, uint64_t step, double peak)
{
    enum { PARTS = 1000000 };
    struct schedule s = r->trainer.schedule;
    s.peak = peak;
    if (r->options.minutes <= 0)
        return schedule_rate(&s, step);
    s.steps = PARTS;
    if (s.warmup >= 1) {
        if ((double)step <= s.warmup)
            return s.peak * (double)step / s.warmup;
        s.warmup = 0;
    }
    return schedule_rate(&s, 1 + (uint64_t)(run_share(r) * (PARTS - 1)));
}
