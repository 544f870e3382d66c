/* SPDX-License-Identifier: Apache-2.0 */
/* Philox and the draws made with it; see random.h. Floating point only converts a density to (1 - p) 2^64 and chooses
   the part size; IEEE arithmetic makes both the same on every machine. */
#include "masks/base/random.h"
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 10 };

void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t ret[4])
{
    uint32_t c[4], k0 = key[0], k1 = key[1];
    memcpy(c, counter, sizeof c);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t a = UINT64_C(0xD2511F53) * c[0], b = UINT64_C(0xCD9E8D57) * c[2];
        uint32_t x1 = c[1], x3 = c[3];
        c[0] = (uint32_t)(b >> 32) ^ x1 ^ k0;
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ x3 ^ k1;
        c[3] = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    memcpy(ret, c, sizeof c);
}

struct draws draws_begin(uint64_t seed, enum random_stream stream, uint32_t row, uint32_t part)
{
    return (struct draws){.key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
                          .counter = {0, row, part, (uint32_t)stream}};
}

uint64_t draws_next(struct draws *d)
{
    uint32_t half = (uint32_t)(d->next % 2);
    if (!half) {
        d->counter[0] = (uint32_t)(d->next / 2);
        philox(d->counter, d->key, d->word);
    }
    d->next++;
    return d->word[2 * half] | (uint64_t)d->word[2 * half + 1] << 32;
}

/* The high half of a 64 x 64 bit product. */
static uint64_t multiply_high(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b >> 64);
}

uint32_t draws_below(struct draws *d, uint32_t n)
{
    return (uint32_t)multiply_high(draws_next(d), n);
}

struct gaps gaps_new(double p)
{
    struct gaps g = {.survive[0] = (uint64_t)((1 - p) * 0x1p64), .part = 1};
    while (g.part * p < 64)
        g.part *= 2;
    for (g.steps = 1; g.steps < GAPS_STEPS && g.survive[g.steps - 1]; g.steps++)
        g.survive[g.steps] = multiply_high(g.survive[g.steps - 1], g.survive[g.steps - 1]);
    return g;
}

uint32_t gaps_draw(const struct gaps *g, struct draws *d)
{
    uint64_t draw = draws_next(d), left = UINT64_MAX;
    uint32_t gap = 0;
    for (uint32_t k = g->steps; k-- > 0;) {
        uint64_t next = multiply_high(left, g->survive[k]);
        if (draw < next) {
            left = next;
            gap += 1u << k;
        }
    }
    return gap;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static uint32_t sort_unique(uint32_t *value, uint32_t count)
{
    qsort(value, count, sizeof *value, compare);
    uint32_t kept = 0;
    for (uint32_t k = 0; k < count; k++)
        if (!kept || value[kept - 1] != value[k])
            value[kept++] = value[k];
    return kept;
}

/* Each draw adds at most one new value. Drawing exactly the number of missing values therefore never draws too many:
   the result is the first k distinct values. */
void draws_distinct(struct draws *d, uint32_t k, uint32_t n, uint32_t *ret)
{
    for (uint32_t have = 0; have < k; have = sort_unique(ret, k))
        for (uint32_t x = have; x < k; x++)
            ret[x] = draws_below(d, n);
}
