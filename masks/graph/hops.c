/* SPDX-License-Identifier: Apache-2.0 */
/* Breadth-first search from each query; the reached nodes are a row of bits. */
#include "masks/base/memory.h"
#include "masks/graph/graph.h"
#include <stdlib.h>
#include <string.h>

struct search {
    const struct pattern *graph;
    uint64_t *bits;    /* [n / 64, rounded up] */
    uint32_t *reached; /* [n], in the order of distance */
    uint32_t count;
};

static void reach(struct search *s, uint32_t j)
{
    uint64_t bit = UINT64_C(1) << (j % 64);
    if (s->bits[j / 64] & bit)
        return;
    s->bits[j / 64] |= bit;
    s->reached[s->count++] = j;
}

static void search_from(struct search *s, uint32_t i, uint32_t hops)
{
    const struct pattern *p = s->graph;
    uint32_t begin = 0;
    s->count = 0;
    reach(s, i);
    for (uint32_t hop = 0; hop < hops && begin < s->count && s->count < p->n; hop++) {
        uint32_t end = s->count;
        for (; begin < end && s->count < p->n; begin++) {
            uint32_t from = s->reached[begin];
            for (uint64_t r = p->row[from]; r < p->row[from + 1]; r++)
                for (uint32_t j = p->run[r].begin; j < p->run[r].end; j++)
                    reach(s, j);
        }
    }
}

struct pattern *pattern_hops(const struct pattern *p, uint32_t hops, struct error *e)
{
    size_t words = ((size_t)p->n + 63) / 64;
    struct search s = {.graph = p,
                       .bits = memory_new(words, sizeof *s.bits),
                       .reached = memory_new(p->n, sizeof *s.reached)};
    struct pattern *ret = pattern_new(p->n);
    bool fits = true;
    for (uint32_t i = 0; i < p->n && fits; i++) {
        search_from(&s, i, hops);
        fits = pattern_add_bits(ret, i, s.bits);
        for (uint32_t k = 0; k < s.count; k++)
            s.bits[s.reached[k] / 64] = 0;
    }
    free(s.bits);
    free(s.reached);
    if (fits)
        return pattern_finish(ret);
    pattern_destroy(ret);
    error_set(e, ERROR_INPUT, "%u hops give more than 2^31 runs of active keys", hops);
    return NULL;
}

static struct pattern *change(const struct pattern *p, void *context, struct error *e)
{
    return pattern_hops(p, *(uint32_t *)context, e);
}

struct mask *mask_hops(const struct mask *m, uint32_t hops, struct error *e)
{
    if (m->queries) {
        error_set(e, ERROR_INPUT, "%s: hops are for as many keys as queries", m->source);
        return NULL;
    }
    return mask_map(m, change, &hops, e);
}
