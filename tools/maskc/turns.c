/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/maskc/turns.h"
#include <stdlib.h>
#include <time.h>

enum { MIN_TURNS = 5, MAX_LAUNCHES = 1000 };
static const double seconds_per_turn = 0.01;
static const double seconds_settled = 0.05; /* of a launch whose beginning does not count */

double turns_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

uint32_t turns_launches(double seconds, double turn)
{
    double launches = turn / seconds;
    return launches < 1 ? 1 : launches > MAX_LAUNCHES ? MAX_LAUNCHES : (uint32_t)launches;
}

/* One turn of launches that take about `seconds` each; *ret is their mean. One before it is not timed: what
   another contender left, its data in the caches and the clock of its instructions, would count for much in
   a short launch and for little in a long one. */
static int time_turn(struct contender *c, bool backward, double seconds, double *ret,
                     struct error *e)
{
    const uint32_t launches = turns_launches(seconds, seconds_per_turn);
    if (seconds < seconds_settled && trial_run(c->trial, backward, e))
        return -1;
    double start = turns_now();
    for (uint32_t k = 0; k < launches; k++)
        if (trial_run(c->trial, backward, e))
            return -1;
    *ret = (turns_now() - start) / launches;
    return 0;
}

uint32_t turns_measure(struct contender *all, uint32_t n, bool backward, double seconds,
                       struct error *e)
{
    double launch[TURNS_CONTENDERS] = {0}, start = turns_now();
    uint32_t count = 0;
    for (uint32_t k = 0; k < n; k++) /* the first also brings code and tables into the caches */
        if (time_turn(&all[k], backward, seconds_per_turn, &launch[k], e))
            return 0;
    while (count < MIN_TURNS || (count < TURNS_MOST && turns_now() - start < seconds)) {
        for (uint32_t k = 0; k < n; k++)
            if (time_turn(&all[k], backward, launch[k], &all[k].seconds[count], e))
                return 0;
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
