/* SPDX-License-Identifier: Apache-2.0 */
/* Other ways to use an importance, each as a path from the smallest mask of its kind to the full one. */
#include "gen/snap/internal.h"
#include "masks/base/memory.h"
#include "masks/readers/keep.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHARES = 1024, TILE = 32 };

/* A tile of a head, or a distance of one, or a window: what is taken next. */
struct part {
    double order, value; /* by falling `order` */
    uint64_t head;
    uint32_t i, j; /* tile; distance i */
};

struct rival {
    struct part *part;
    uint64_t parts;
    double *kept; /* [parts + 1]: value after so many parts */
    double *wide; /* [n * n] of a head as doubles */
};

static int by_order(const void *x, const void *y)
{
    const struct part *a = x, *b = y;
    if (a->order != b->order)
        return a->order > b->order ? -1 : 1;
    if (a->head != b->head)
        return a->head < b->head ? -1 : 1;
    if (a->i != b->i)
        return a->i < b->i ? -1 : 1;
    return a->j < b->j ? -1 : a->j > b->j;
}

static const float *head_of(const struct search *x, uint64_t h)
{
    return x->p->value + h * x->p->n * x->p->n;
}

static uint64_t heads_of(const struct search *x)
{
    return (uint64_t)x->p->layers * x->p->heads;
}

static bool is_border(uint32_t n, uint32_t i, uint32_t j)
{
    return i == 0 || j == 0 || i + 1 == n || j + 1 == n;
}

static uint32_t distance(uint32_t i, uint32_t j)
{
    return i > j ? i - j : j - i;
}

/* With --keep-rows: the same and the most important key of each row, whatever else it has, so that larger masks never
   keep less. Takes the pattern. */
static struct pattern *keep_rows(const struct search *x, uint64_t head, struct pattern *p)
{
    uint32_t n = x->p->n;
    if (!x->r->keep_rows)
        return p;
    uint8_t *bytes = memory_new((size_t)n * n, 1);
    for (uint32_t i = 0; i < n; i++) {
        for (uint64_t k = p->row[i]; k < p->row[i + 1]; k++)
            memset(bytes + (size_t)i * n + p->run[k].begin, 1, p->run[k].end - p->run[k].begin);
        bytes[(size_t)i * n + row_most(head_of(x, head) + (size_t)i * n, n)] = 1;
    }
    pattern_destroy(p);
    p = pattern_from_bytes(bytes, n, n);
    free(bytes);
    return p;
}

/* A mask from one byte an entry, [n * n] for each head. */
static struct mask *from_bytes(const struct search *x,
                               void (*fill)(const struct path *path, uint64_t k, uint64_t head,
                                            uint8_t *bytes),
                               const struct path *path, uint64_t k)
{
    uint32_t n = x->p->n;
    uint8_t *bytes = memory_new((size_t)n * n, 1);
    struct pattern **given = memory_new(heads_of(x), sizeof *given);
    for (uint64_t h = 0; h < heads_of(x); h++) {
        memset(bytes, 0, (size_t)n * n);
        fill(path, k, h, bytes);
        given[h] = keep_rows(x, h, pattern_from_bytes(bytes, n, n));
    }
    struct mask *m = mask_new(x->p->layers, x->p->heads, given, "snap");
    free(given);
    free(bytes);
    return m;
}

static double retained_by_mask(const struct path *path, uint64_t k)
{
    struct mask *m = path->mask(path, k);
    double r = snap_retained(path->search->p, m);
    mask_destroy(m);
    return r;
}

static double retained_by_sum(const struct path *path, uint64_t k)
{
    const struct rival *r = path->data;
    return r->kept[k] / path->search->total;
}

static struct mask *magnitude(const struct path *path, uint64_t k)
{
    const struct search *x = path->search;
    const struct rival *r = path->data;
    size_t entries = (size_t)x->p->n * x->p->n;
    struct pattern **given = memory_new(heads_of(x), sizeof *given);
    for (uint64_t h = 0; h < heads_of(x); h++) {
        for (size_t q = 0; q < entries; q++)
            r->wide[q] = head_of(x, h)[q];
        given[h] = keep_rows(x, h, keep_greatest(r->wide, x->p->n, 100.0 * (double)k / SHARES));
    }
    struct mask *m = mask_new(x->p->layers, x->p->heads, given, "magnitude");
    free(given);
    return m;
}

static void fill_tiles(const struct path *path, uint64_t k, uint64_t head, uint8_t *bytes)
{
    const struct rival *r = path->data;
    uint32_t n = path->search->p->n;
    for (const struct part *t = r->part; t < r->part + k; t++)
        for (uint32_t i = t->i; t->head == head && i < t->i + TILE && i < n; i++)
            memset(bytes + (size_t)i * n + t->j, 1, n - t->j < TILE ? n - t->j : TILE);
}

static struct mask *tiles(const struct path *path, uint64_t k)
{
    return from_bytes(path->search, fill_tiles, path, k);
}

static void fill_window(const struct path *path, uint64_t k, uint64_t head, uint8_t *bytes)
{
    uint32_t n = path->search->p->n;
    (void)head;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            bytes[(size_t)i * n + j] = distance(i, j) <= k || is_border(n, i, j);
}

static struct mask *window(const struct path *path, uint64_t k)
{
    if (path->search->r->keep_rows)
        return from_bytes(path->search, fill_window, path, k);
    const struct importance *p = path->search->p;
    uint8_t *bytes = memory_new((size_t)p->n * p->n, 1);
    fill_window(path, k, 0, bytes);
    struct pattern *one = pattern_from_bytes(bytes, p->n, p->n);
    struct pattern **given = memory_new(heads_of(path->search), sizeof *given);
    for (uint64_t h = 0; h < heads_of(path->search); h++)
        given[h] = one;
    struct mask *m = mask_new(p->layers, p->heads, given, "window");
    free(given);
    free(bytes);
    return m;
}

static void fill_distances(const struct path *path, uint64_t k, uint64_t head, uint8_t *bytes)
{
    const struct rival *r = path->data;
    uint32_t n = path->search->p->n;
    bool *on = memory_new(n, sizeof *on);
    for (uint64_t q = 0; q < k; q++)
        on[r->part[q].i] |= r->part[q].head == head;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            bytes[(size_t)i * n + j] = on[distance(i, j)] || is_border(n, i, j);
    free(on);
}

static struct mask *distances(const struct path *path, uint64_t k)
{
    return from_bytes(path->search, fill_distances, path, k);
}

static void list_tiles(const struct search *x, struct rival *r)
{
    uint32_t n = x->p->n, side = (n + TILE - 1) / TILE;
    r->part = memory_new(heads_of(x) * side * side, sizeof *r->part);
    for (uint64_t h = 0; h < heads_of(x); h++)
        for (uint32_t t = 0; t < side * side; t++) {
            struct part *to = &r->part[r->parts++];
            *to = (struct part){.head = h, .i = t / side * TILE, .j = t % side * TILE};
            for (uint32_t i = to->i; i < to->i + TILE && i < n; i++)
                for (uint32_t j = to->j; j < to->j + TILE && j < n; j++)
                    to->value += head_of(x, h)[(size_t)i * n + j];
            to->order = to->value;
        }
}

/* Sums of the inside of the border by distance, and how many entries each has. */
static void list_distances(const struct search *x, struct rival *r)
{
    uint32_t n = x->p->n;
    r->part = memory_new(heads_of(x) * n, sizeof *r->part);
    r->parts = heads_of(x) * n;
    for (uint64_t h = 0; h < heads_of(x); h++) {
        struct part *part = r->part + h * n;
        for (uint32_t d = 0; d < n; d++)
            part[d] = (struct part){.head = h, .i = d};
        for (uint32_t i = 1; i + 1 < n; i++)
            for (uint32_t j = 1; j + 1 < n; j++)
                part[distance(i, j)].value += head_of(x, h)[(size_t)i * n + j];
        for (uint32_t d = 0; d < n; d++) {
            double inside = n > 2 ? n - 2.0 : 0, count = d ? 2 * (inside - d) : inside;
            part[d].order = count > 0 ? part[d].value / count : 0;
        }
    }
}

static double border_value(const struct search *x)
{
    uint32_t n = x->p->n;
    double sum = 0;
    for (uint64_t h = 0; h < heads_of(x); h++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++)
                sum += is_border(n, i, j) ? head_of(x, h)[(size_t)i * n + j] : 0;
    return sum;
}

/* In the order of taking, with what is kept after each. */
static void sort_parts(struct rival *r, double kept)
{
    qsort(r->part, r->parts, sizeof *r->part, by_order);
    r->kept = memory_new(r->parts + 1, sizeof *r->kept);
    r->kept[0] = kept;
    for (uint64_t k = 0; k < r->parts; k++)
        r->kept[k + 1] = r->kept[k] + r->part[k].value;
}

void rival_begin(const struct search *x, enum snap_kind kind, struct path *ret)
{
    struct rival *r = memory_new(1, sizeof *r);
    *ret = (struct path){.search = x, .data = r};
    switch (kind) {
    case SNAP_MAGNITUDE:
        r->wide = memory_new((size_t)x->p->n * x->p->n, sizeof *r->wide);
        ret->last = SHARES;
        ret->mask = magnitude;
        ret->retained = retained_by_mask;
        return;
    case SNAP_TILES:
        list_tiles(x, r);
        sort_parts(r, 0);
        ret->mask = tiles;
        break;
    case SNAP_DISTANCES:
        list_distances(x, r);
        sort_parts(r, border_value(x));
        ret->mask = distances;
        break;
    default:
        ret->last = x->p->n - 1;
        ret->mask = window;
        ret->retained = retained_by_mask;
        return;
    }
    ret->last = r->parts;
    ret->retained = x->r->keep_rows ? retained_by_mask : retained_by_sum;
}

void rival_finish(struct path *path)
{
    struct rival *r = path->data;
    free(r->part);
    free(r->kept);
    free(r->wide);
    free(r);
}
