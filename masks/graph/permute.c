/* SPDX-License-Identifier: Apache-2.0 */
/* Masks in another order of their tokens; the graph of a mask. */
#include "masks/base/memory.h"
#include "masks/base/text.h"
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

struct permutation {
    const char *source;
    const uint32_t *order;
    uint32_t *position;      /* the inverse of `order` */
    uint64_t *bits;          /* of a row */
    double held;             /* bytes of the mask and of the results so far */
    const struct pattern *p; /* before */
};

/* Row i after the permutation. */
static void permute_row(const struct permutation *x, uint32_t i)
{
    const struct pattern *p = x->p;
    memset(x->bits, 0, ((size_t)p->n + 63) / 64 * sizeof *x->bits);
    for (uint64_t r = p->row[x->order[i]]; r < p->row[x->order[i] + 1]; r++)
        for (uint32_t j = p->run[r].begin; j < p->run[r].end; j++)
            x->bits[x->position[j] / 64] |= UINT64_C(1) << (x->position[j] % 64);
}

static uint64_t count_runs(void *context, uint32_t i)
{
    const struct permutation *x = context;
    permute_row(x, i);
    return pattern_count_runs(x->bits, x->p->n);
}

static struct pattern *permute_rows(const struct permutation *x,
                                    const struct pattern_rows *rows, struct error *e)
{
    if (pattern_check_rows(rows, e))
        return NULL;
    struct pattern *ret = pattern_new(rows->n);
    bool fits = true;
    for (uint32_t i = 0; i < rows->n && fits; i++) {
        permute_row(x, i);
        fits = pattern_add_bits(ret, i, x->bits);
    }
    if (fits)
        return pattern_finish(ret);
    pattern_destroy(ret);
    pattern_refuse_rows(rows, (double)PATTERN_MAX_RUNS, e);
    return NULL;
}

static struct pattern *permute(const struct pattern *p, void *context, struct error *e)
{
    struct permutation *x = context;
    struct text what = {0};
    text_add(&what, "%s: in this order the mask has", x->source);
    const struct pattern_rows rows = {
        .n = p->n,
        .count = count_runs,
        .context = x,
        .held = x->held,
        .what = text_get(&what),
        .remedy = "an order in which neighbours are close together is needed (maskc order)"};
    x->p = p;
    struct pattern *ret = permute_rows(x, &rows, e);
    text_finish(&what);
    x->held += ret ? pattern_bytes(ret) : 0;
    return ret;
}

struct mask *mask_permute(const struct mask *m, const uint32_t *order, struct error *e)
{
    if (m->queries) {
        error_set(e, ERROR_INPUT, "%s: an order is for as many keys as queries", m->source);
        return NULL;
    }
    struct permutation x = {.source = m->source,
                            .order = order,
                            .position = order_invert(order, m->n),
                            .bits = memory_new(((size_t)m->n + 63) / 64, sizeof *x.bits),
                            .held = mask_bytes(m)};
    struct mask *ret = mask_map(m, permute, &x, e);
    free(x.position);
    free(x.bits);
    return ret;
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
