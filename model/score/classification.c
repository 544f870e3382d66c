/* SPDX-License-Identifier: Apache-2.0 */
#include "model/score/classification.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdlib.h>

static uint64_t equal_pairs(const uint32_t *gold, const uint32_t *found, size_t count)
{
    uint64_t equal = 0;
    for (size_t k = 0; k < count; k++)
        equal += gold[k] == found[k];
    return equal;
}

double score_accuracy(const uint32_t *gold, const uint32_t *found, size_t count)
{
    return count ? (double)equal_pairs(gold, found, count) / (double)count : NAN;
}

double score_f1(const uint32_t *gold, const uint32_t *found, size_t count, uint32_t positive)
{
    uint64_t both = 0, one = 0;
    for (size_t k = 0; k < count; k++) {
        both += gold[k] == positive && found[k] == positive;
        one += (gold[k] == positive) != (found[k] == positive);
    }
    if (!count)
        return NAN;
    return both ? 2.0 * (double)both / (double)(2 * both + one) : 0;
}

double score_matthews(const uint32_t *gold, const uint32_t *found, size_t count,
                      uint32_t classes)
{
    uint64_t *times = memory_new((size_t)classes * 2, sizeof *times);
    for (size_t k = 0; k < count; k++) {
        times[gold[k]]++;
        times[classes + found[k]]++;
    }
    /* Covariances times count^2; count^2 is beyond 64 bits from 2^32 pairs on only. */
    long double n = (long double)count, both = 0, of_gold = n * n, of_found = n * n;
    for (uint32_t c = 0; c < classes; c++) {
        long double g = (long double)times[c], f = (long double)times[classes + c];
        both += g * f;
        of_gold -= g * g;
        of_found -= f * f;
    }
    free(times);
    if (!count)
        return NAN;
    if (of_gold == 0 || of_found == 0)
        return 0;
    long double covariance = (long double)equal_pairs(gold, found, count) * n - both;
    return (double)(covariance / sqrtl(of_gold * of_found));
}
