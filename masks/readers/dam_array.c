/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/readers/dam_array.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static int no_parameters(const struct array_file *a, struct error *e)
{
    return error_set(
        e, ERROR_INPUT,
        "%s: --dam, parameters [H,n,2], [H,n,n] or [H,n-2] are expected, or L such", a->name);
}

static bool is_of(const struct array_file *a, const char *kind)
{
    return a->dam && !strcmp(a->dam, kind);
}

/* [L,H,n-2] may look like [H,n,n] or [H,n,2]: then the file's own word decides. */
static enum dam_form form_of(const struct array_file *a)
{
    const struct npy *x = &a->array;
    const uint64_t last = x->shape[x->rank - 1];
    if (is_of(a, "p") || is_of(a, "dam-u"))
        return DAM_ENTRIES;
    if (x->rank == 2 || (x->rank == 3 && is_of(a, "dam-s")))
        return DAM_DISTANCES;
    if (last == 2)
        return DAM_LOGITS;
    return last == x->shape[x->rank - 2] ? DAM_ENTRIES : DAM_DISTANCES;
}

static int read_shape(const struct array_file *a, struct dam_array *d, struct error *e)
{
    const struct npy *x = &a->array;
    if (x->rank < 2 || x->rank > 4)
        return no_parameters(a, e);
    d->form = form_of(a);
    const uint32_t own = d->form == DAM_DISTANCES ? 2 : 3; /* without layers */
    if (x->rank != own && x->rank != own + 1)
        return no_parameters(a, e);
    const uint64_t *at = x->shape + (x->rank - own), layers = x->rank > own ? x->shape[0] : 1,
                   n = d->form == DAM_DISTANCES ? at[1] + 2 : at[1];
    if (d->form == DAM_ENTRIES && at[2] != n)
        return no_parameters(a, e);
    if (own == 3 && n == 2 && !a->dam)
        return error_set(e, ERROR_INPUT,
                         "%s: --dam, [H,2,2] may be logits or alpha; a length other "
                         "than 2 is expected",
                         a->name);
    if (n < 1 || n > PATTERN_MAX_N || at[0] < 1 || at[0] > MASK_MAX_HEADS)
        return error_set(e, ERROR_INPUT,
                         "%s: %llu heads of length %llu, 1..%d and 1..%d are expected", a->name,
                         (unsigned long long)at[0], (unsigned long long)n, MASK_MAX_HEADS,
                         PATTERN_MAX_N);
    if (layers < 1 || layers > MASK_MAX_LAYERS || layers * at[0] > MASK_MAX_PLACES)
        return error_set(e, ERROR_INPUT,
                         "%s: %llu layers, 1..%d and at most %d heads in all are expected",
                         a->name, (unsigned long long)layers, MASK_MAX_LAYERS, MASK_MAX_PLACES);
    d->layers = (uint32_t)layers;
    d->heads = (uint32_t)at[0];
    d->n = (uint32_t)n;
    return 0;
}

int dam_array_of(const struct array_file *a, const struct mask_request *r,
                 struct dam_array *ret, struct error *e)
{
    struct dam_array d = {.file = a};
    if (a->array.type != NPY_FLOAT && a->array.type != NPY_BFLOAT)
        return error_set(e, ERROR_INPUT, "%s: --dam, parameters as floats are expected",
                         a->name);
    if (r->has_threshold || r->has_keep)
        return error_set(e, ERROR_INPUT,
                         "%s: --dam decides by itself, --threshold and --keep do not "
                         "go with it",
                         a->name);
    if (read_shape(a, &d, e) < 0)
        return -1;
    if (r->n > d.n)
        return error_set(e, ERROR_INPUT, "%s: -n %u is larger than the parameters' length %u",
                         a->name, r->n, d.n);
    d.n = r->n ? r->n : d.n;
    d.border = r->border || d.form == DAM_DISTANCES;
    *ret = d;
    return 0;
}

/* Place [layer, head, a, b] without the dimensions that the array has not. */
static uint32_t place(const struct dam_array *d, const uint64_t whole[4], uint64_t ret[4])
{
    const struct npy *x = &d->file->array;
    const uint32_t own = d->form == DAM_DISTANCES ? 2 : 3;
    memcpy(ret, whole + (x->rank > own ? 0 : 1), x->rank * sizeof *ret);
    return x->rank;
}

static int read_number(const struct dam_array *d, const uint64_t whole[4], double *ret,
                       struct error *e)
{
    uint64_t at[4];
    char text[96] = "";
    const uint32_t rank = place(d, whole, at);
    *ret = npy_get(&d->file->array, npy_index(&d->file->array, at));
    if (d->finite ? isfinite(*ret) : *ret == *ret)
        return 0;
    for (uint32_t k = 0; k < rank; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%llu", k ? "," : "",
                 (unsigned long long)at[k]);
    return error_set(e, ERROR_INPUT, "%s: %s at [%s], %snumbers are expected", d->file->name,
                     *ret == *ret ? "an infinite value" : "NaN", text,
                     d->finite ? "finite " : "");
}

int dam_logits(const struct dam_array *d, uint32_t layer, uint32_t head, uint32_t row,
               double *ret, struct error *e)
{
    const struct npy *x = &d->file->array;
    const uint64_t distances = d->form == DAM_DISTANCES ? x->shape[x->rank - 1] : d->n;
    for (uint32_t k = 0; k < d->n; k++) {
        double off = 0;
        const uint64_t a = dam_by_distance(d) ? k : row, b = dam_by_distance(d) ? 0 : k;
        ret[k] = 0;
        if (k < distances && read_number(d, (uint64_t[]){layer, head, a, b}, &ret[k], e) < 0)
            return -1;
        if (d->form == DAM_LOGITS &&
            read_number(d, (uint64_t[]){layer, head, a, 1}, &off, e) < 0)
            return -1;
        if (d->form == DAM_LOGITS)
            ret[k] = ret[k] == off ? 0 : ret[k] - off; /* infinite ones may be equal */
    }
    return 0;
}
