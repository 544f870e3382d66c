/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gen/random_mask.h"
#include "masks/base/memory.h"
#include <stdlib.h>

uint32_t random_below(struct random *r, uint32_t limit)
{
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    uint32_t x = (uint32_t)(r->state >> 33);
    return limit ? x % limit : 0;
}

/* One structure with its parameters; `on` says whether it has (i, j). */
struct shape {
    uint32_t kind, a, b, seed;
};
enum { SHAPES = 13 };

static uint32_t noise(uint32_t seed, uint32_t i, uint32_t j)
{
    uint32_t x = seed ^ i * 2654435761u ^ j * 2246822519u;
    x ^= x >> 15;
    x *= 2654435761u;
    return x ^ x >> 13;
}

static bool on(const struct shape *s, uint32_t n, uint32_t i, uint32_t j)
{
    uint32_t distance = i > j ? i - j : j - i;
    switch (s->kind) {
    case 0:
        return distance <= s->a % 40;
    case 1:
        return distance == s->a % n || distance == s->b % n;
    case 2:
        return i == s->a % n || i == s->b % n;
    case 3:
        return j == s->a % n || j == s->b % n;
    case 4:
        return i / (1 + s->a % n) == j / (1 + s->a % n);
    case 5:
        return j <= i;
    case 6:
        return noise(s->seed, i, j) % 100 < s->a % 12;
    case 7:
        return noise(s->seed, i, j) % 100 < s->a % 100;
    case 8:
        return distance % (2 + s->a % 9) == 0;
    case 9:
        return j % (2 + s->a % 9) == 0;
    case 10:
        return true;
    case 11:
        return distance <= s->b % 12 || distance % (3 + s->a % 12) == 0;
    default:
        return i == j || (j == i + 1 && i % 3);
    }
}

struct pattern *random_pattern(struct random *r, uint32_t n)
{
    struct shape shape[4];
    uint32_t count = 1 + random_below(r, 3),
             empty = random_below(r, 4) ? 0 : 2 + random_below(r, 5);
    uint32_t holes = random_below(r, 5) ? 0 : 1 + random_below(r, 10);
    for (uint32_t k = 0; k < count; k++)
        shape[k] = (struct shape){random_below(r, SHAPES), random_below(r, 1 << 16),
                                  random_below(r, 1 << 16), random_below(r, 1u << 31)};
    uint8_t *bytes = memory_new((size_t)n * n, 1);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            for (uint32_t k = 0; k < count; k++)
                if (on(&shape[k], n, i, j) && !(empty && i % empty == 0) &&
                    noise(holes, i, j) % 100 >= holes)
                    bytes[(size_t)i * n + j] = 1;
    struct pattern *p = pattern_from_bytes(bytes, n, n);
    free(bytes);
    return p;
}

struct mask *random_mask(struct random *r)
{
    static const uint32_t lengths[] = {1,  2,   31,  32,  33,  63,  64, 65,
                                       96, 100, 127, 128, 129, 160, 257};
    uint32_t n = lengths[random_below(r, sizeof lengths / sizeof *lengths)];
    uint32_t heads = 1 + random_below(r, 3),
             layers = random_below(r, 3) ? 1 : 1 + random_below(r, 3);
    struct pattern *pool[3], *given[9];
    for (uint32_t k = 0; k < 3; k++)
        pool[k] = random_pattern(r, n);
    bool used[3] = {false};
    for (uint32_t k = 0; k < heads * layers; k++) {
        uint32_t which = random_below(r, 3);
        given[k] = pool[which];
        used[which] = true;
    }
    struct mask *m = mask_new(layers, heads, given, "random");
    for (uint32_t k = 0; k < 3; k++)
        if (!used[k])
            pattern_destroy(pool[k]);
    return m;
}
