/* SPDX-License-Identifier: Apache-2.0 */
#include "model/mask/drop.h"
#include "masks/base/memory.h"
#include "model/base/order.h"
#include <stdlib.h>
#include <string.h>

/* The runs of a row without some of its keys, which ascend. */
static void add_without(struct pattern *to, uint32_t row, struct run r, const uint32_t *key,
                        uint32_t keys)
{
    uint32_t begin = r.begin;
    for (uint32_t k = 0; k < keys; k++) {
        if (key[k] > begin)
            pattern_add(to, row, begin, key[k]);
        begin = key[k] + 1;
    }
    if (begin < r.end)
        pattern_add(to, row, begin, r.end);
}

static struct pattern *without_diagonal(const struct pattern *p)
{
    struct pattern *ret = pattern_new(p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        for (uint64_t k = p->row[i]; k < p->row[i + 1]; k++) {
            const struct run r = p->run[k];
            add_without(ret, i, r, &i, r.begin <= i && i < r.end);
        }
        pattern_row(ret, i);
    }
    return pattern_finish(ret);
}

/* Keys of a run that texts of this length have; none in rows beyond it. */
static uint32_t keys_within(uint32_t row, struct run r, uint32_t length)
{
    const uint32_t end = r.end < length ? r.end : length;
    return row < length && r.begin < end ? end - r.begin : 0;
}

static uint64_t active_within(const struct pattern *p, uint32_t length)
{
    uint64_t ret = 0;
    for (uint32_t i = 0; i < p->n && i < length; i++)
        for (uint64_t k = p->row[i]; k < p->row[i + 1]; k++)
            ret += keys_within(i, p->run[k], length);
    return ret;
}

/* place: ascending numbers of active entries within the length, counted row by row. */
static struct pattern *without_places(const struct pattern *p, uint32_t length,
                                      const uint32_t *place, uint32_t places)
{
    struct pattern *ret = pattern_new(p->n);
    uint32_t *key = memory_new(places, sizeof *key), at = 0;
    uint64_t counted = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        for (uint64_t k = p->row[i]; k < p->row[i + 1]; k++) {
            const struct run r = p->run[k];
            const uint32_t within = keys_within(i, r, length);
            uint32_t keys = 0;
            for (; at < places && place[at] < counted + within; at++)
                key[keys++] = r.begin + (uint32_t)(place[at] - counted);
            add_without(ret, i, r, key, keys);
            counted += within;
        }
        pattern_row(ret, i);
    }
    free(key);
    return pattern_finish(ret);
}

static int read_count(const char *what, uint32_t *ret, struct error *e)
{
    char *end;
    unsigned long k = strncmp(what, "random:", 7) ? 0 : strtoul(what + 7, &end, 10);
    if (!k || k > INT32_MAX || *end || what[7] < '0' || what[7] > '9')
        return error_set(e, ERROR_INPUT, "--drop %s: diagonal or random:K is expected", what);
    *ret = (uint32_t)k;
    return 0;
}

static struct pattern *drop_random(const struct pattern *p, uint32_t count,
                                   struct drop_draws draws, uint32_t place)
{
    uint32_t *chosen = memory_new(count, sizeof *chosen);
    struct draws d = data_draws(draws.seed, STREAM_DROP, place, draws.repeat);
    draws_distinct(&d, count, (uint32_t)active_within(p, draws.length), chosen);
    struct pattern *ret = without_places(p, draws.length, chosen, count);
    free(chosen);
    return ret;
}

static int check_count(const struct mask *m, uint32_t count, uint32_t length, struct error *e)
{
    for (uint32_t k = 0; k < m->n_patterns; k++) {
        const uint64_t active = active_within(m->pattern[k], length);
        if (active > UINT32_MAX || count > active / 2)
            return error_set(e, ERROR_INPUT,
                             "--drop random:%u: at most half of the %llu entries that a head "
                             "has for texts of %u tokens",
                             count, (unsigned long long)active, length);
    }
    return 0;
}

static struct mask *without_random(const struct mask *m, uint32_t count,
                                   const struct model_config *c, struct drop_draws draws)
{
    const uint32_t all = c->layers * c->heads;
    struct pattern **given = memory_new(all, sizeof *given);
    for (uint32_t k = 0; k < all; k++)
        given[k] = drop_random(mask_pattern(m, m->layers == 1 ? 0 : k / c->heads,
                                            m->heads == 1 ? 0 : k % c->heads),
                               count, draws, k);
    struct mask *ret = mask_new(c->layers, c->heads, given, m->source);
    free(given);
    return ret;
}

static struct mask *without_diagonals(const struct mask *m)
{
    const uint32_t all = m->layers * m->heads;
    struct pattern **given = memory_new(all, sizeof *given);
    for (uint32_t k = 0; k < all; k++)
        given[k] = without_diagonal(m->pattern[m->at[k]]);
    struct mask *ret = mask_new(m->layers, m->heads, given, m->source);
    free(given);
    return ret;
}

struct mask *mask_drop(struct mask *m, const char *what, const struct model_config *c,
                       struct drop_draws draws, struct error *e)
{
    uint32_t count = 0;
    struct mask *ret = NULL;
    if (!draws.length || draws.length > m->n)
        draws.length = m->n;
    if (!strcmp(what, "diagonal"))
        ret = without_diagonals(m);
    else if (read_count(what, &count, e) == 0 && check_count(m, count, draws.length, e) == 0)
        ret = without_random(m, count, c, draws);
    mask_destroy(m);
    return ret;
}
