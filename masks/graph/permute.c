/* SPDX-License-Identifier: Apache-2.0 */
/* Masks in another order of their tokens; the graph of a mask. */
#include "masks/base/memory.h"
#include "masks/graph/order.h"
#include <stdlib.h>
#include <string.h>

bool order_is_permutation(const uint32_t *order, uint32_t n)
{
    bool *seen = memory_new(n, sizeof *seen), ok = true;
    for (uint32_t p = 0; p < n && ok; p++) {
        ok = order[p] < n && !seen[order[p]];
        if (ok)
            seen[order[p]] = true;
    }
    free(seen);
    return ok;
}

uint32_t *order_invert(const uint32_t *order, uint32_t n)
{
    uint32_t *position = memory_new(n, sizeof *position);
    for (uint32_t p = 0; p < n; p++)
        position[order[p]] = p;
    return position;
}

static struct pattern *permute(const struct pattern *p, void *context, struct error *e)
{
    const uint32_t *order = context;
    size_t words = ((size_t)p->n + 63) / 64;
    uint32_t *position = order_invert(order, p->n);
    uint64_t *bits = memory_new(words, sizeof *bits);
    struct pattern *ret = pattern_new(p->n);
    bool fits = true;
    for (uint32_t i = 0; i < p->n && fits; i++) {
        memset(bits, 0, words * sizeof *bits);
        for (uint64_t r = p->row[order[i]]; r < p->row[order[i] + 1]; r++)
            for (uint32_t j = p->run[r].begin; j < p->run[r].end; j++)
                bits[position[j] / 64] |= UINT64_C(1) << (position[j] % 64);
        fits = pattern_add_bits(ret, i, bits);
    }
    free(position);
    free(bits);
    if (fits)
        return pattern_finish(ret);
    pattern_destroy(ret);
    error_set(e, ERROR_INPUT, "in this order the mask has more than 2^31 runs of active keys");
    return NULL;
}

struct mask *mask_permute(const struct mask *m, const uint32_t *order, struct error *e)
{
    if (m->queries) {
        error_set(e, ERROR_INPUT, "%s: an order is for as many keys as queries", m->source);
        return NULL;
    }
    return mask_map(m, permute, (void *)order, e); /* permute() only reads it */
}

/* --- the graph of a mask --------------------------------------------------------------------- */

static void add_union(struct pattern *ret, uint32_t i, const struct pattern *a,
                      const struct pattern *b)
{
    uint64_t x = a->row[i], y = b->row[i];
    struct run next = {0, 0};
    while (x < a->row[i + 1] || y < b->row[i + 1]) {
        bool first =
            y == b->row[i + 1] || (x < a->row[i + 1] && a->run[x].begin <= b->run[y].begin);
        struct run run = first ? a->run[x++] : b->run[y++];
        if (run.begin > next.end) {
            if (next.end)
                pattern_add(ret, i, next.begin, next.end);
            next = run;
        } else if (!next.end) {
            next = run;
        } else {
            next.end = next.end > run.end ? next.end : run.end;
        }
    }
    if (next.end)
        pattern_add(ret, i, next.begin, next.end);
    pattern_row(ret, i);
}

static struct pattern *make_union(const struct pattern *a, const struct pattern *b)
{
    struct pattern *ret = pattern_new(a->n);
    for (uint32_t i = 0; i < a->n; i++)
        add_union(ret, i, a, b);
    return pattern_finish(ret);
}

static void replace(struct pattern **p, struct pattern *next)
{
    pattern_destroy(*p);
    *p = next;
}

/* Graphs with more entries are refused: ordering them would take minutes. */
#define MOST_ENTRIES (UINT64_C(1) << 30)

struct pattern *order_graph(const struct mask *m, struct error *e)
{
    struct pattern *graph = pattern_copy(m->pattern[0]);
    for (uint32_t k = 1; k < m->n_patterns; k++)
        replace(&graph, make_union(graph, m->pattern[k]));
    struct pattern *transposed = pattern_transpose(graph, e);
    if (!transposed) {
        pattern_destroy(graph);
        return NULL;
    }
    if (!pattern_equal(graph, transposed))
        replace(&graph, make_union(graph, transposed));
    pattern_destroy(transposed);
    if (graph->active <= MOST_ENTRIES)
        return graph;
    error_set(e, ERROR_INPUT, "%s: %llu entries, orders are found for at most 2^30", m->source,
              (unsigned long long)graph->active);
    pattern_destroy(graph);
    return NULL;
}
