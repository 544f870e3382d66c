/* SPDX-License-Identifier: Apache-2.0 */
/* Breadth-first search from each query; the reached nodes are a row of bits. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include "masks/graph/graph.h"
#include <stdlib.h>

struct search {
    const struct pattern *graph;
    uint64_t *bits;    /* [n / 64, rounded up] */
    uint32_t *reached; /* [n], in the order of distance */
    uint32_t count, hops;
};

static void reach(struct search *s, uint32_t j)
{
    uint64_t bit = UINT64_C(1) << (j % 64);
    if (s->bits[j / 64] & bit)
        return;
    s->bits[j / 64] |= bit;
    s->reached[s->count++] = j;
}

static void search_from(struct search *s, uint32_t i)
{
    const struct pattern *p = s->graph;
    uint32_t begin = 0;
    s->count = 0;
    reach(s, i);
    for (uint32_t hop = 0; hop < s->hops && begin < s->count && s->count < p->n; hop++) {
        uint32_t end = s->count;
        for (; begin < end && s->count < p->n; begin++) {
            uint32_t from = s->reached[begin];
            for (uint64_t r = p->row[from]; r < p->row[from + 1]; r++)
                for (uint32_t j = p->run[r].begin; j < p->run[r].end; j++)
                    reach(s, j);
        }
    }
}

static void forget(struct search *s)
{
    for (uint32_t k = 0; k < s->count; k++)
        s->bits[s->reached[k] / 64] = 0;
}

static uint64_t count_runs(void *context, uint32_t i)
{
    struct search *s = context;
    search_from(s, i);
    uint64_t ret = pattern_count_runs(s->bits, s->graph->n);
    forget(s);
    return ret;
}

static struct pattern *search_all(struct search *s, const struct pattern_rows *rows,
                                  struct error *e)
{
    if (pattern_check_rows(rows, e))
        return NULL;
    struct pattern *ret = pattern_new(rows->n);
    bool fits = true;
    for (uint32_t i = 0; i < rows->n && fits; i++) {
        search_from(s, i);
        fits = pattern_add_bits(ret, i, s->bits);
        forget(s);
    }
    if (fits)
        return pattern_finish(ret);
    pattern_destroy(ret);
    pattern_refuse_rows(rows, (double)PATTERN_MAX_RUNS, e);
    return NULL;
}

struct hops {
    const char *source;
    uint32_t hops;
    double held; /* bytes of the graphs and of the results so far */
};

static struct pattern *change(const struct pattern *p, void *context, struct error *e)
{
    struct hops *x = context;
    size_t words = ((size_t)p->n + 63) / 64;
    struct text what = {0};
    struct search s = {.graph = p,
                       .bits = memory_new(words, sizeof *s.bits),
                       .reached = memory_new(p->n, sizeof *s.reached),
                       .hops = x->hops};
    text_add(&what, "%s: --hops %u gives", x->source, x->hops);
    const struct pattern_rows rows = {
        .n = p->n,
        .count = count_runs,
        .context = &s,
        .held = x->held + (double)(words * sizeof *s.bits + p->n * sizeof *s.reached),
        .what = text_get(&what),
        .remedy = "fewer hops are needed, or an order of the tokens in which neighbours are "
                  "close together (maskc order without --hops finds one)"};
    struct pattern *ret = search_all(&s, &rows, e);
    text_finish(&what);
    free(s.bits);
    free(s.reached);
    x->held += ret ? pattern_bytes(ret) : 0;
    return ret;
}

struct mask *mask_hops(const struct mask *m, uint32_t hops, struct error *e)
{
    if (m->queries) {
        error_set(e, ERROR_INPUT, "%s: hops are for as many keys as queries", m->source);
        return NULL;
    }
    struct hops x = {m->source, hops, mask_bytes(m)};
    return mask_map(m, change, &x, e);
}
