/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskc/rounds.h"
#include <stdlib.h>
#include <time.h>

enum { MIN_ROUNDS = 5, MAX_LAUNCHES = 1000 };
static const double seconds_per_round = 0.01;
static const double seconds_settled =
    0.05; /* a launch this long needs no untimed one before it */

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double rounds_now(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

double rounds_thread_now(void)
{
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

uint32_t rounds_launches(double seconds, double round)
{
    double launches = round / seconds;
    return launches < 1 ? 1 : launches > MAX_LAUNCHES ? MAX_LAUNCHES : (uint32_t)launches;
}

/* Times one contender for a round, by launches that take about `seconds` each; *ret is their mean. The launch before
   them is not timed: data that another contender left in the caches, and the clock that its instructions ran at,
   would weigh heavily in a short launch. */
static int time_round(struct contender *c, bool backward, double seconds, double *ret,
                      struct error *e)
{
    const uint32_t launches = rounds_launches(seconds, seconds_per_round);
    if (seconds < seconds_settled && trial_run(c->trial, backward, e))
        return -1;
    double (*now)(void) = c->own ? rounds_thread_now : rounds_now;
    const struct busy_time since = busy_now();
    double start = now();
    for (uint32_t k = 0; k < launches; k++)
        if (trial_run(c->trial, backward, e))
            return -1;
    *ret = (now() - start) / launches;
    busy_add(&c->timed, since);
    return 0;
}

uint32_t rounds_measure(struct contender *all, uint32_t n, bool backward, double seconds,
                        struct error *e)
{
    double launch[ROUNDS_CONTENDERS] = {0}, start = rounds_now();
    uint32_t count = 0;
    for (uint32_t k = 0; k < n; k++) /* warms the caches and finds the time of a launch */
        if (time_round(&all[k], backward, seconds_per_round, &launch[k], e))
            return 0;
    for (uint32_t k = 0; k < n; k++)
        all[k].timed = (struct busy_time){0};
    while (count < MIN_ROUNDS || (count < ROUNDS_MOST && rounds_now() - start < seconds)) {
        for (uint32_t k = 0; k < n; k++) {
            double *mean = &all[k].seconds[count];
            if (time_round(&all[k], backward, launch[k], mean, e))
                return 0;
            /* Another program may have run during the launch that was timed first. */
            launch[k] = *mean < launch[k] ? *mean : launch[k];
        }
        count++;
    }
    for (uint32_t k = 0; k < n; k++)
        qsort(all[k].seconds, count, sizeof(double), ascending);
    return count;
}

void contender_finish(struct contender *c)
{
    trial_destroy(c->trial);
    maskc_kernel_destroy(c->kernel);
    free(c->seconds);
}
