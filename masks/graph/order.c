/* SPDX-License-Identifier: Apache-2.0 */
/* Orders from the graph alone. Both begin at a node from which the graph is deep, found by repeated breadth-first search. */
#include "masks/graph/order.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

/* A breadth-first search among the nodes of one part. */
struct search {
    const struct pattern *graph;
    uint32_t *degree;  /* [n] */
    uint32_t *part;    /* [n]: the part that a node belongs to */
    uint32_t *reached; /* [n]: by which search */
    uint32_t searches;
    uint32_t *queue;            /* [n]: nodes in the order in which they were reached */
    uint32_t count, last_level; /* nodes; where the last level begins */
};

static struct search search_new(const struct pattern *graph)
{
    uint32_t n = graph->n;
    struct search s = {.graph = graph,
                       .degree = memory_new(n, sizeof *s.degree),
                       .part = memory_new(n, sizeof *s.part),
                       .reached = memory_new(n, sizeof *s.reached),
                       .queue = memory_new(n, sizeof *s.queue)};
    for (uint32_t i = 0; i < n; i++)
        s.degree[i] = pattern_row_active(graph, i);
    return s;
}

static void search_finish(struct search *s)
{
    free(s->degree);
    free(s->part);
    free(s->reached);
    free(s->queue);
}

/* Appends what `from` sees of `part` and no search has reached. */
static void reach(struct search *s, uint32_t from, uint32_t part)
{
    const struct pattern *g = s->graph;
    for (uint64_t r = g->row[from]; r < g->row[from + 1]; r++)
        for (uint32_t j = g->run[r].begin; j < g->run[r].end; j++)
            if (s->reached[j] != s->searches && s->part[j] == part) {
                s->reached[j] = s->searches;
                s->queue[s->count++] = j;
            }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts new nodes of the queue by degree, then number. */
static void sort_by_degree(const struct search *s, uint32_t begin)
{
    uint32_t count = s->count - begin;
    if (count < 2)
        return;
    uint64_t *key = memory_new(count, sizeof *key);
    for (uint32_t k = 0; k < count; k++)
        key[k] = (uint64_t)s->degree[s->queue[begin + k]] << 32 | s->queue[begin + k];
    qsort(key, count, sizeof *key, compare);
    for (uint32_t k = 0; k < count; k++)
        s->queue[begin + k] = (uint32_t)key[k];
    free(key);
}

/* Searches the node's part, breadth first, from the node on. Returns the number of levels. */
static uint32_t search_from(struct search *s, uint32_t node, bool by_degree)
{
    uint32_t part = s->part[node], levels = 0;
    s->searches++;
    s->count = 0;
    s->reached[node] = s->searches;
    s->queue[s->count++] = node;
    for (uint32_t at = 0, end = 1; at < s->count; levels++, end = s->count) {
        s->last_level = at;
        for (; at < end; at++) {
            uint32_t begin = s->count;
            reach(s, s->queue[at], part);
            if (by_degree)
                sort_by_degree(s, begin);
        }
    }
    return levels;
}

/* A node of the part of `node` at an end of it (George and Liu): of the last level the one with the fewest neighbours, until
   searches from there are no deeper. */
static uint32_t find_end(struct search *s, uint32_t node)
{
    enum { MOST = 8 };
    uint32_t levels = search_from(s, node, false);
    for (int k = 0; k < MOST; k++) {
        uint32_t best = s->queue[s->last_level];
        for (uint32_t at = s->last_level; at < s->count; at++)
            if (s->degree[s->queue[at]] < s->degree[best])
                best = s->queue[at];
        uint32_t deeper = search_from(s, best, false);
        if (deeper <= levels)
            return best;
        levels = deeper;
        node = best;
    }
    return node;
}

enum { PLACED = UINT32_MAX };

uint32_t *order_rcm(const struct pattern *graph)
{
    uint32_t n = graph->n, left = n;
    struct search s = search_new(graph);
    uint32_t *order = memory_new(n, sizeof *order);
    for (uint32_t i = 0; i < n; i++) {
        if (s.part[i] == PLACED)
            continue;
        search_from(&s, find_end(&s, i), true);
        for (uint32_t k = 0; k < s.count; k++) { /* from the back: reversed */
            order[--left] = s.queue[k];
            s.part[s.queue[k]] = PLACED;
        }
    }
    search_finish(&s);
    return order;
}

/* --- bisection ------------------------------------------------------------------------------- */

enum { SMALLEST = 16 }; /* nodes that are not halved */

struct range {
    uint32_t begin, end;
};

/* Sorts a range by breadth-first searches from an end of each of its components. */
static void sort_range(struct search *s, uint32_t *order, struct range range, uint32_t part)
{
    uint32_t *sorted = memory_new(range.end - range.begin, sizeof *sorted), done = 0;
    for (uint32_t k = range.begin; k < range.end; k++)
        s->part[order[k]] = part;
    for (uint32_t k = range.begin; k < range.end; k++) {
        if (s->part[order[k]] != part)
            continue;
        search_from(s, find_end(s, order[k]), false);
        for (uint32_t q = 0; q < s->count; q++) {
            sorted[done++] = s->queue[q];
            s->part[s->queue[q]] = PLACED;
        }
    }
    memcpy(order + range.begin, sorted, done * sizeof *sorted);
    free(sorted);
}

uint32_t *order_bisect(const struct pattern *graph)
{
    enum { MOST_RANGES = 64 }; /* one a level, 20 levels */
    uint32_t n = graph->n, parts = 0;
    struct search s = search_new(graph);
    uint32_t *order = memory_new(n, sizeof *order);
    struct range stack[MOST_RANGES] = {{0, n}};
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t count = 1; count;) {
        struct range r = stack[--count];
        if (r.end - r.begin <= SMALLEST)
            continue;
        sort_range(&s, order, r, ++parts);
        uint32_t middle = r.begin + (r.end - r.begin) / 2;
        stack[count++] = (struct range){middle, r.end};
        stack[count++] = (struct range){r.begin, middle};
    }
    search_finish(&s);
    return order;
}
