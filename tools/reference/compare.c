/* SPDX-License-Identifier: Apache-2.0 */
/* The error measure of the contract. NaN never passes, and an infinity only meets its like. */
#include "tools/reference/check.h"
#include <math.h>

double error_of_difference(const double *a, const double *b, uint64_t size, double parts)
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
    double scale = fmax(fmax(sqrt(norm), parts), 0.1 * sqrt((double)size));
    return size ? sqrt(difference) / scale : 0;
}

double error_measure(const double *a, const double *b, uint64_t size)
{
    return error_of_difference(a, b, size, 0);
}
