/* SPDX-License-Identifier: Apache-2.0 */
/* neighborhood, documents and sink: grids, packed texts and StreamingLLM's window. */
#include "masks/language/primitive.h"
#include <stdlib.h>

enum { SIZES, DILATION, CAUSAL };

struct clipped {
    struct runs *runs;
    struct clip clip;
};

static void add_clipped(void *context, uint32_t begin, uint32_t end)
{
    struct clipped *c = context;
    runs_add(c->runs, c->clip, begin, end);
}

void row_neighborhood(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    grid_row(&c->grid, i, add_clipped, &(struct clipped){ret, clip});
}

/* The list of a parameter must have one number for each axis, each in least .. most. */
static int check_list(const struct call *c, const struct prepare_context *x, int parameter,
                      int64_t least, int64_t most, struct error *e)
{
    const struct argument *a = c->given[parameter];
    const char *name = x->node->primitive->parameter[parameter].name;
    if (a && a->n_list != c->grid.n_axes)
        return script_error(
            x->script, a->at, e,
            "neighborhood: %s has %u numbers, one for each of %u axes is expected", name,
            a->n_list, c->grid.n_axes);
    for (uint32_t k = 0; a && k < a->n_list; k++)
        if (a->list[k] < least || a->list[k] > most)
            return script_error(x->script, a->at, e,
                                "neighborhood: %s %lld is out of range, %lld..%lld is expected",
                                name, (long long)a->list[k], (long long)least, (long long)most);
    return 0;
}

static int check_cells(const struct call *c, const struct prepare_context *x, struct error *e)
{
    int64_t cells = 1;
    for (uint32_t k = 0; k < c->n_sizes / 2; k++)
        cells *= c->size[k]; /* each at most 2^20 */
    if (cells == c->n)
        return 0;
    return script_error(x->script, x->node->at, e,
                        "neighborhood: a grid of %lld cells, the mask's length %u is expected",
                        (long long)cells, c->n);
}

static int check_axis(const struct call *c, const struct prepare_context *x, uint32_t k,
                      struct error *e)
{
    const struct grid_axis *a = &c->grid.axis[GRID_MAX_AXES - c->grid.n_axes + k];
    if ((uint64_t)a->kernel * a->dilation <= a->size)
        return 0;
    return script_error(x->script, x->node->at, e,
                        "neighborhood: a window of %u cells with dilation %u, at most %u cells "
                        "in all are expected",
                        a->kernel, a->dilation, a->size);
}

static void fill_axes(struct call *c)
{
    const struct argument *dilation = c->given[DILATION], *causal = c->given[CAUSAL];
    uint32_t axes = c->grid.n_axes, first = GRID_MAX_AXES - axes;
    for (uint32_t k = 0; k < first; k++)
        c->grid.axis[k] = (struct grid_axis){1, 1, 1, false};
    for (uint32_t k = 0; k < axes; k++)
        c->grid.axis[first + k] = (struct grid_axis){
            (uint32_t)c->size[k], (uint32_t)c->size[axes + k],
            dilation ? (uint32_t)dilation->list[k] : 1, causal && causal->list[k]};
}

int prepare_neighborhood(struct call *c, const struct prepare_context *x, struct error *e)
{
    if (c->n_sizes % 2 || c->n_sizes > 2 * GRID_MAX_AXES)
        return script_error(x->script, x->node->at, e,
                            "neighborhood: %u numbers, (n, k), (h, w, kh, kw) or (d, h, w, kd, "
                            "kh, kw) is expected",
                            c->n_sizes);
    c->grid.n_axes = c->n_sizes / 2;
    if (check_list(c, x, DILATION, 1, c->n, e) || check_list(c, x, CAUSAL, 0, 1, e) ||
        check_cells(c, x, e))
        return -1;
    fill_axes(c);
    for (uint32_t k = 0; k < c->grid.n_axes; k++)
        if (check_axis(c, x, k, e))
            return -1;
    return 0;
}

/* Lengths become ends. */
int prepare_documents(struct call *c, const struct prepare_context *x, struct error *e)
{
    for (uint32_t k = 1; k < c->n_sizes; k++)
        c->size[k] += c->size[k - 1];
    int64_t sum = c->size[c->n_sizes - 1];
    if (sum == c->n)
        return 0;
    return script_error(x->script, x->node->at, e,
                        "documents: the lengths sum to %lld, the mask's length %u is expected",
                        (long long)sum, c->n);
}

void row_documents(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    uint32_t low = 0, high = c->n_sizes - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->size[middle] <= i)
            low = middle + 1;
        else
            high = middle;
    }
    runs_add(ret, clip, low ? c->size[low - 1] : 0, c->size[low]);
}

void row_sink(const struct call *c, uint32_t i, struct clip clip, struct runs *ret)
{
    runs_add(ret, clip, 0, c->whole[0]);
    runs_add(ret, clip, (int64_t)i + 1 - c->whole[1], (int64_t)i + 1);
}
