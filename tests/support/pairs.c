/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/pairs.h"

enum { CANDIDATES = 40, TRIES = 1000 };

/* SplitMix64. */
uint32_t pairs_draw(struct pairs *p, uint32_t below)
{
    uint64_t z = p->random += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (uint32_t)((z ^ z >> 31) % below);
}

bool pairs_row_with(struct pairs *p, uint32_t a, uint32_t u, uint32_t b, uint32_t v,
                    struct pairs_row *ret)
{
    for (int k = 0; k < TRIES; k++) {
        *ret = (struct pairs_row){{0}};
        for (uint32_t f = 0; f < p->factors; f++)
            ret->value[f] = pairs_draw(p, p->values[f]);
        ret->value[a] = u;
        ret->value[b] = v;
        if (!p->allows || p->allows(ret))
            return true;
    }
    return false;
}

static uint32_t count_new(const struct pairs *p, const struct pairs_row *r)
{
    uint32_t count = 0;
    for (uint32_t a = 0; a < p->factors; a++)
        for (uint32_t b = a + 1; b < p->factors; b++)
            count += !p->seen[a][r->value[a]][b][r->value[b]];
    return count;
}

void pairs_take(struct pairs *p, const struct pairs_row *r)
{
    for (uint32_t a = 0; a < p->factors; a++)
        for (uint32_t b = a + 1; b < p->factors; b++)
            p->seen[a][r->value[a]][b][r->value[b]] = true;
}

static void best_with(struct pairs *p, uint32_t a, uint32_t u, uint32_t b, uint32_t v,
                      struct pairs_row *ret)
{
    struct pairs_row r;
    for (int k = 0; k < CANDIDATES; k++)
        if (pairs_row_with(p, a, u, b, v, &r) && count_new(p, &r) > count_new(p, ret))
            *ret = r;
    pairs_take(p, ret);
}

bool pairs_next(struct pairs *p, struct pairs_row *ret)
{
    for (uint32_t a = 0; a < p->factors; a++)
        for (uint32_t b = a + 1; b < p->factors; b++)
            for (uint32_t u = 0; u < p->values[a]; u++)
                for (uint32_t v = 0; v < p->values[b]; v++)
                    if (!p->seen[a][u][b][v] && pairs_row_with(p, a, u, b, v, ret)) {
                        best_with(p, a, u, b, v, ret);
                        return true;
                    }
    return false;
}

bool pairs_turn(struct pairs *p, uint32_t turn, struct pairs_row *row)
{
    struct pairs_row best = *row, r = *row;
    for (int k = 0; k < CANDIDATES; k++) {
        for (uint32_t f = 0; f < p->factors; f++)
            if (turn >> f & 1)
                r.value[f] = pairs_draw(p, p->values[f]);
        if ((!p->allows || p->allows(&r)) && count_new(p, &r) > count_new(p, &best))
            best = r;
    }
    const bool any = count_new(p, &best) > 0;
    pairs_take(p, &best);
    *row = best;
    return any;
}

uint32_t pairs_seen(const struct pairs *p)
{
    uint32_t count = 0;
    for (uint32_t a = 0; a < p->factors; a++)
        for (uint32_t b = a + 1; b < p->factors; b++)
            for (uint32_t u = 0; u < p->values[a]; u++)
                for (uint32_t v = 0; v < p->values[b]; v++)
                    count += p->seen[a][u][b][v];
    return count;
}

uint32_t pairs_of(const struct pairs *p)
{
    uint32_t count = 0;
    for (uint32_t a = 0; a < p->factors; a++)
        for (uint32_t b = a + 1; b < p->factors; b++)
            count += p->values[a] * p->values[b];
    return count;
}

uint64_t pairs_product(const struct pairs *p)
{
    uint64_t count = 1;
    for (uint32_t f = 0; f < p->factors; f++)
        count *= p->values[f];
    return count;
}

struct pairs_row pairs_at(const struct pairs *p, uint64_t number)
{
    struct pairs_row r = {{0}};
    for (uint32_t f = p->factors; f-- > 0; number /= p->values[f])
        r.value[f] = (uint32_t)(number % p->values[f]);
    return r;
}
