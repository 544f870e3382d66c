/* SPDX-License-Identifier: Apache-2.0 */
/* The unknowns are rates over their priors: all are near one number, the speed of this machine, so one regularisation weight
   suits all. Coordinate descent solves the small normal equations within bounds. Measurements with a large error, taken while
   something else ran, get less weight, and the fit is repeated. The noisier they are, the more the rates are held at the prior:
   otherwise the noise of a busy machine moves rates to their bounds, and prices of plans unlike the probes' are far off. */
#include "gen/cost/fit.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PULL    3e-4 /* least weight of staying at the prior; a measurement has 1 */
#define OUTLIER 0.25 /* relative error above which a measurement loses weight */
enum { REWEIGHTS = 4, SWEEPS = 4000 };

struct equations {
    double a[RATES][RATES], b[RATES];
};

double fit_seconds(const struct fit_row *row, const double rate[RATES])
{
    double sum = 0;
    for (int k = 0; k < RATES; k++)
        sum += row->term[k] * rate[k];
    return sum;
}

static double error_of(const struct fit_row *row, const double rate[RATES])
{
    return fit_seconds(row, rate) / row->seconds - 1;
}

static void add_row(struct equations *q, const struct fit_row *row, const double prior[RATES],
                    double weight)
{
    double share[RATES];
    for (int k = 0; k < RATES; k++)
        share[k] = row->term[k] * prior[k] / row->seconds;
    for (int k = 0; k < RATES; k++) {
        for (int j = 0; j < RATES; j++)
            q->a[k][j] += weight * share[k] * share[j];
        q->b[k] += weight * share[k];
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of `of` over all measurements; 0 without any. */
static double median(double of(const struct fit_row *row, const double rate[RATES]),
                     const struct fit_row *row, uint32_t count, const double rate[RATES])
{
    double *value = memory_new(count + 1, sizeof *value);
    for (uint32_t k = 0; k < count; k++)
        value[k] = of(&row[k], rate);
    qsort(value, count, sizeof *value, compare);
    const double ret = value[count / 2];
    free(value);
    return ret;
}

static double slowness(const struct fit_row *row, const double rate[RATES])
{
    return row->seconds / fit_seconds(row, rate);
}

static double distance(const struct fit_row *row, const double rate[RATES])
{
    return fabs(error_of(row, rate));
}

/* Of the weight of a measurement: the variance of their noise, where a rate may well be as far from the prior as its own size. */
static double pull_of(const struct fit_row *row, uint32_t count, const double rate[RATES])
{
    const double noise =
        1.48 * median(distance, row, count, rate); /* a normal distribution's */
    return fmax(PULL, noise * noise);
}

static void solve(const struct equations *q, double x[RATES])
{
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int k = 0; k < RATES; k++) {
            double rest = q->b[k];
            for (int j = 0; j < RATES; j++)
                rest -= j == k ? 0 : q->a[k][j] * x[j];
            x[k] = fmin(fmax(rest / q->a[k][k], 1 / FIT_REACH), FIT_REACH);
        }
}

double fit_rates(const struct fit_row *row, uint32_t count, const double prior[RATES],
                 double ret[RATES])
{
    double known[RATES], x[RATES], rate[RATES], sum = 0;
    memcpy(known, prior, sizeof known);
    memcpy(rate, prior, sizeof rate);
    const double start = count ? median(slowness, row, count, prior) : 1;
    for (int k = 0; k < RATES; k++)
        x[k] = start;
    for (int round = 0; round < REWEIGHTS; round++) {
        struct equations q = {{{0}}, {0}};
        const double pull = round ? pull_of(row, count, rate) : PULL;
        for (int k = 0; k < RATES; k++) {
            q.a[k][k] = pull;
            q.b[k] = pull * start;
        }
        for (uint32_t k = 0; k < count; k++) {
            double far = round ? fabs(error_of(&row[k], rate)) : 0;
            add_row(&q, &row[k], known, far > OUTLIER ? OUTLIER / far : 1);
        }
        solve(&q, x);
        for (int k = 0; k < RATES; k++)
            rate[k] = known[k] * x[k];
    }
    for (uint32_t k = 0; k < count; k++)
        sum += error_of(&row[k], rate) * error_of(&row[k], rate);
    memcpy(ret, rate, sizeof rate);
    return count ? sqrt(sum / count) : 0;
}
