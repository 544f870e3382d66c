/* SPDX-License-Identifier: Apache-2.0 */
/* Rates from measured times: non-negative least squares of the relative errors, regularised towards the table's rates
   where measurements say little. */
#pragma once
#include "gen/cost/machine.h"

struct fit_row {
    double term[RATES]; /* coefficients of the rates, from effort_terms */
    double seconds;     /* measured, minus launch and other constant parts; above 0 */
};

/* Fits rates to `count` measurements. `prior` has the table's rates. A rate that is 0 there stays 0; the others stay
   within a factor of FIT_REACH. `ret` may be `prior`. Returns the root mean square of the relative errors. */
#define FIT_REACH 10.0
double fit_rates(const struct fit_row *row, uint32_t count, const double prior[RATES],
                 double ret[RATES]);

/* The seconds that these rates predict for a measurement. */
double fit_seconds(const struct fit_row *row, const double rate[RATES]);
