/* SPDX-License-Identifier: Apache-2.0 */
/* No sort is needed: a radix descent finds the value at the cut, then entries below it are dropped
   and of those equal to it the first ones in the order of (i, j). */
#include "masks/readers/keep.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Doubles as integers that sort alike; -0 becomes +0 first. */
static uint64_t sort_key(double value)
{
    uint64_t bits;
    value += 0.0;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static uint64_t n_dropped(uint32_t n, double percent)
{
    enum { HUNDRED = 100000000 };
    uint64_t kept = (uint64_t)llround(percent * 1e6);
    return (uint64_t)((unsigned __int128)(HUNDRED - kept) * ((uint64_t)n * n) / HUNDRED);
}

/* sort_key() of the value of this rank, 0 being the smallest; *equal_below: how many equal values have a lower rank. */
static uint64_t select_key(const double *value, uint64_t count, uint64_t rank,
                           uint64_t *equal_below)
{
    const int bits =
        count < 1 << 16 ? 8 : 16; /* a digit; buckets are not worth more than entries */
    const uint64_t digits = UINT64_C(1) << bits;
    uint64_t *bucket = memory_new(digits, sizeof *bucket), prefix = 0, mask = 0;
    for (int shift = 64 - bits; shift >= 0; shift -= bits) {
        memset(bucket, 0, digits * sizeof *bucket);
        for (uint64_t k = 0; k < count; k++) {
            uint64_t key = sort_key(value[k]);
            if ((key & mask) == prefix)
                bucket[key >> shift & (digits - 1)]++;
        }
        uint64_t digit = 0;
        while (rank >= bucket[digit])
            rank -= bucket[digit++];
        prefix |= digit << shift;
        mask |= (digits - 1) << shift;
    }
    free(bucket);
    *equal_below = rank;
    return prefix;
}

struct pattern *keep_greatest(const double *value, uint32_t n, double percent)
{
    uint64_t count = (uint64_t)n * n, dropped = n_dropped(n, percent), equal = 0,
             cut = UINT64_MAX;
    if (dropped < count)
        cut = select_key(value, count, dropped, &equal);
    struct pattern *p = pattern_new(n);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            uint64_t key = sort_key(value[(uint64_t)i * n + j]);
            bool drop = key < cut || (key == cut && equal);
            equal -= key == cut && equal;
            if (!drop)
                pattern_add(p, i, j, j + 1);
        }
        pattern_row(p, i);
    }
    return pattern_finish(p);
}
