/* SPDX-License-Identifier: Apache-2.0 */
#include "model/score/correlation.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static bool is_constant(const double *x, size_t count)
{
    for (size_t k = 1; k < count; k++)
        if (x[k] != x[0])
            return false;
    return true;
}

static long double mean_of(const double *x, size_t count)
{
    long double sum = 0;
    for (size_t k = 0; k < count; k++)
        sum += x[k];
    return sum / (long double)count;
}

/* long double: squares of any two doubles are within its range. */
double score_pearson(const double *x, const double *y, size_t count)
{
    if (is_constant(x, count) || is_constant(y, count))
        return NAN;
    long double mx = mean_of(x, count), my = mean_of(y, count), xx = 0, yy = 0, xy = 0;
    for (size_t k = 0; k < count; k++) {
        long double dx = x[k] - mx, dy = y[k] - my;
        xx += dx * dx;
        yy += dy * dy;
        xy += dx * dy;
    }
    double r = (double)(xy / (sqrtl(xx) * sqrtl(yy)));
    return r > 1 ? 1 : r < -1 ? -1 : r;
}

struct ranked {
    double value;
    size_t at;
};

static int by_value(const void *a, const void *b)
{
    double x = ((const struct ranked *)a)->value, y = ((const struct ranked *)b)->value;
    return (x > y) - (x < y);
}

static double *ranks_of(const double *x, size_t count)
{
    struct ranked *order = memory_new(count, sizeof *order);
    double *rank = memory_new(count, sizeof *rank);
    for (size_t k = 0; k < count; k++)
        order[k] = (struct ranked){x[k], k};
    qsort(order, count, sizeof *order, by_value);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && order[end].value == order[first].value;)
            end++;
        for (size_t k = first; k < end; k++)
            rank[order[k].at] = ((double)first + (double)end + 1) / 2;
    }
    free(order);
    return rank;
}

double score_spearman(const double *x, const double *y, size_t count)
{
    double *rx = ranks_of(x, count), *ry = ranks_of(y, count);
    double r = score_pearson(rx, ry, count);
    free(rx);
    free(ry);
    return r;
}
