/* SPDX-License-Identifier: Apache-2.0 */
/* The error measure of the contract. NaN never passes, and an infinity only meets its like. */
#include "tools/reference/check.h"
#include <math.h>

/* norm(a - b) / max(norm(b), least) */
static double relative(const double *a, const double *b, uint64_t size, double least)
{
    double difference = 0, norm = 0;
    for (uint64_t k = 0; k < size; k++) {
        if (isnan(a[k]) || isnan(b[k]))
            return INFINITY;
        if (isinf(a[k]) || isinf(b[k])) {
            if (a[k] != b[k])
                return INFINITY;
            continue;
        }
        difference += (a[k] - b[k]) * (a[k] - b[k]);
        norm += b[k] * b[k];
    }
    return sqrt(difference) / fmax(sqrt(norm), least);
}

double error_of_difference(const double *a, const double *b, uint64_t size, double parts)
{
    return size ? relative(a, b, size, fmax(parts, 0.1 * sqrt((double)size))) : 0;
}

/* Root mean square of what is finite. */
static double mean_square_root(const double *b, uint64_t size)
{
    double squares = 0;
    for (uint64_t k = 0; k < size; k++)
        squares += isfinite(b[k]) ? b[k] * b[k] : 0;
    return size ? sqrt(squares / (double)size) : 0;
}

double error_of_rows(const double *a, const double *b, uint64_t size, uint32_t row)
{
    const double all = 0.1 * mean_square_root(b, size);
    double worst = 0;
    for (uint64_t k = 0; k < size; k += row) {
        const double least = mean_square_root(b + k, row) < 0.01 ? 0.1 : 0.01;
        worst = fmax(worst, relative(a + k, b + k, row, fmax(all, least) * sqrt(row)));
    }
    return worst;
}

double error_measure(const double *a, const double *b, uint64_t size)
{
    return error_of_difference(a, b, size, 0);
}
