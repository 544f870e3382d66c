/* SPDX-License-Identifier: Apache-2.0 */
/* The unknowns are rates over their priors: all are near 1, so one regularisation weight suits all. Coordinate descent
   solves the small normal equations within bounds. Measurements with a large error, taken while something else ran, get
   less weight, and the fit is repeated. */
#include "gen/cost/fit.h"
#include <math.h>
#include <string.h>

#define PULL    1e-3 /* weight of staying at the prior; a measurement has 1 */
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
    for (int k = 0; k < RATES; k++)
        x[k] = 1;
    for (int round = 0; round < REWEIGHTS; round++) {
        struct equations q = {{{0}}, {0}};
        for (int k = 0; k < RATES; k++)
            q.a[k][k] = q.b[k] = PULL;
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
