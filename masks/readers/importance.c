/* SPDX-License-Identifier: Apache-2.0 */
/* Importances from arrays in files. Containers and shapes are those of masks. */
#include "masks/readers/readers.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* An array, and the first of its layers to read. */
struct part {
    const struct npy *array;
    uint64_t first;
};

static uint64_t place(const struct npy *a, uint64_t layer, uint64_t head, uint64_t i,
                      uint64_t j)
{
    uint64_t position[] = {layer, head, i, j};
    return npy_index(a, position + (4 - a->rank));
}

/* An entry of a mask is worth 1; a negative value, even one below a float's range, stays to be refused. */
static double value_at(const struct npy *a, uint64_t index)
{
    bool real = a->type == NPY_FLOAT || a->type == NPY_BFLOAT;
    double x = npy_get(a, index);
    return x < 0 ? -1 : real ? x : x > 0 ? 1 : 0;
}

/* Values as multiples of `unit`; returns the largest. */
static double fill(const struct part *from, double unit, struct importance *p)
{
    float *to = p->value;
    double most = 0;
    for (uint32_t l = 0; l < p->layers; l++)
        for (uint32_t h = 0; h < p->heads; h++)
            for (uint32_t i = 0; i < p->n; i++) {
                uint64_t at = place(from->array, from->first + l, h, i, 0);
                uint64_t step =
                    p->n > 1 ? place(from->array, from->first + l, h, i, 1) - at : 0;
                for (uint32_t j = 0; j < p->n; j++, at += step) {
                    double x = value_at(from->array, at);
                    most = fmax(most, x);
                    *to++ = x < 0 ? -1 : (float)(x / unit);
                }
            }
    return most;
}

static int check_layer(const struct mask_request *r, uint64_t layers, const char *name,
                       struct error *e)
{
    if (r->layer < (int64_t)layers)
        return 0;
    return error_set(e, ERROR_INPUT, "%s: --layer %lld is out of range, 0..%llu is expected",
                     name, (long long)r->layer, (unsigned long long)layers - 1);
}

static int read_dense(const struct array_file *a, const struct mask_request *r,
                      struct importance *ret, struct error *e)
{
    struct array_dims d;
    if (array_dims(&a->array, a->name, false, &d, e) < 0)
        return -1;
    if (r->n > d.n)
        return error_set(e, ERROR_INPUT, "%s: -n %u is larger than the array's length %u",
                         a->name, r->n, d.n);
    if (check_layer(r, d.layers, a->name, e) < 0)
        return -1;
    const struct part from = {&a->array, r->layer > 0 ? (uint64_t)r->layer : 0};
    if (importance_new(r->layer < 0 ? d.layers : 1, d.heads, r->n ? r->n : d.n, a->name, ret,
                       e) < 0)
        return -1;
    double most = fill(&from, 1, ret);
    if (most > 0 && most < INFINITY && (most < FLT_MIN || most > FLT_MAX))
        fill(&from, most, ret); /* only ratios matter */
    return 0;
}

/* A one-head importance for so many heads. */
static int repeat_heads(struct importance *p, uint32_t heads, const char *name, struct error *e)
{
    struct importance more;
    if (!heads || heads == p->heads)
        return 0;
    if (p->heads != 1)
        return error_set(e, ERROR_INPUT, "%s: %u heads, --heads %u needs 1 or %u", name,
                         p->heads, heads, heads);
    if (mask_check_heads(p->layers, heads, e) < 0 ||
        importance_new(p->layers, heads, p->n, name, &more, e) < 0)
        return -1;
    size_t entries = (size_t)p->n * p->n;
    for (size_t k = 0; k < (size_t)p->layers * heads; k++)
        memcpy(more.value + k * entries, p->value + k / heads * entries,
               entries * sizeof(float));
    importance_finish(p);
    *p = more;
    return 0;
}

static int check_options(const struct mask_request *r, struct error *e)
{
    const char *suffix = strrchr(r->name, '.');
    if (!suffix || (strcmp(suffix, ".npy") && strcmp(suffix, ".safetensors")))
        return error_set(e, ERROR_INPUT,
                         "%s: an importance is an array: .npy or .safetensors is expected",
                         r->name);
    if (r->has_threshold || r->has_keep)
        return error_set(e, ERROR_INPUT, "%s: an importance takes no --threshold or --keep",
                         r->name);
    if (r->border && !r->dam)
        return error_set(e, ERROR_INPUT, "%s: --border goes with --dam", r->name);
    return mask_check_heads(1, r->heads, e);
}

int importance_from_array(const struct array_file *a, const struct mask_request *r,
                          struct importance *ret, struct error *e)
{
    struct importance p = {0};
    if ((r->dam ? dam_importance : read_dense)(a, r, &p, e) < 0 ||
        repeat_heads(&p, r->heads, a->name, e) < 0 || importance_check(&p, a->name, e) < 0) {
        importance_finish(&p);
        return -1;
    }
    *ret = p;
    return 0;
}

int importance_read(const struct mask_request *r, struct importance *ret, struct error *e)
{
    struct array_file a;
    if (check_options(r, e) < 0 || array_open(r->name, r->tensor, &a, e) < 0)
        return -1;
    int failed = importance_from_array(&a, r, ret, e);
    array_close(&a);
    return failed;
}
