/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/busy.h"
#include <time.h>

/* On an idle machine threads run 95 % of the time and more; a second program on the same CPU leaves them half. */
#define IDLE_SHARE 0.8

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct busy_time busy_now(void)
{
    return (struct busy_time){seconds_of(CLOCK_MONOTONIC),
                              seconds_of(CLOCK_PROCESS_CPUTIME_ID)};
}

void busy_add(struct busy_time *sum, struct busy_time since)
{
    const struct busy_time now = busy_now();
    sum->wall += now.wall - since.wall;
    sum->cpu += now.cpu - since.cpu;
}

double busy_share(const struct busy_time *sum, uint32_t threads)
{
    const double share = sum->wall > 0 ? sum->cpu / (sum->wall * threads) : 1;
    return share < 1 ? share : 1;
}

bool busy_is(double share)
{
    return share < IDLE_SHARE;
}

void busy_text(double share, const char *remedy, struct text *to)
{
    text_add(to,
             "the machine is busy: the threads ran %.0f %% of the time, so times are too long; "
             "repeat it on an idle machine",
             100 * share);
    if (remedy)
        text_add(to, ", or with %s", remedy);
}
