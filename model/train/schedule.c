/* SPDX-License-Identifier: Apache-2.0 */
#include "model/train/schedule.h"
#include <math.h>
#include <string.h>

static const char *const names[SCHEDULE_COUNT] = {
    [SCHEDULE_LINEAR] = "linear",
    [SCHEDULE_POLY] = "poly",
    [SCHEDULE_COSINE] = "cosine",
    [SCHEDULE_CONSTANT] = "constant",
};

const char *schedule_name(enum schedule_decay d)
{
    return names[d];
}

bool schedule_parse(const char *name, enum schedule_decay *ret)
{
    for (int k = 0; k < SCHEDULE_COUNT; k++)
        if (strcmp(names[k], name) == 0) {
            *ret = (enum schedule_decay)k;
            return true;
        }
    return false;
}

uint64_t schedule_warmup_steps(const struct schedule *s)
{
    double steps = floor(s->warmup < 1 ? s->warmup * (double)s->steps + 0.5 : s->warmup);
    return steps < (double)s->steps ? (uint64_t)steps : s->steps;
}

double schedule_rate(const struct schedule *s, uint64_t step)
{
    const uint64_t warmup = schedule_warmup_steps(s), done = step - 1;
    if (step <= warmup)
        return s->peak * (double)step / (double)warmup;
    if (s->decay == SCHEDULE_CONSTANT)
        return s->peak;
    if (done >= s->steps)
        return 0;
    const double left = (double)(s->steps - done), after = (double)(s->steps - warmup);
    switch (s->decay) {
    case SCHEDULE_POLY:
        return s->peak * sqrt(left / (double)s->steps);
    case SCHEDULE_COSINE:
        return s->peak * 0.5 * (1 + cos(M_PI * (1 - left / after)));
    default:
        return s->peak * left / after;
    }
}
