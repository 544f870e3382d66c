/* SPDX-License-Identifier: Apache-2.0 */
/* Rates from measured times: non-negative least squares of the relative errors, held to what is known
   before where the measurements say little. */
#pragma once
#include "gen/cost/machine.h"

struct fit_row {
    double term[RATES]; /* what each rate is multiplied with, as effort_terms has it */
    double seconds;     /* measured, less what the rates do not explain; above 0 */
};

/* Fits rates to `count` rows. `prior` is what to stay near, the table's; a rate that is 0 there stays
   0, others stay within FIT_REACH times it. `ret` may be `prior`. Returns the root mean square of
   the relative errors. */
#define FIT_REACH 10.0
double fit_rates(const struct fit_row *row, uint32_t count, const double prior[RATES],
                 double ret[RATES]);

/* Seconds that rates give for a row. */
double fit_seconds(const struct fit_row *row, const double rate[RATES]);
