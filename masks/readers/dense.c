/* SPDX-License-Identifier: Apache-2.0 */
/* Dense masks. A head in C order is read row by row; in Fortran order its transpose is, which is
   what lies together in the file, and is transposed back afterwards. */
#include "masks/base/memory.h"
#include "masks/readers/bits.h"
#include "masks/readers/keep.h"
#include "masks/readers/readers.h"
#include <stdlib.h>

struct dense {
    const struct npy *array;
    const char *name;
    const struct mask_request *request;
    uint64_t layers, heads;
    uint32_t n;
    bool in_text; /* file("x.npy") of the mask language, not an argument of a command */
};

/* For programs without these options: maskbert, Python. */
#define MAKE(threshold) \
    "(`maskc make FILE --threshold " threshold " -o NEW.npy` writes a boolean mask)"

static int check_shape(struct dense *d, struct error *e)
{
    struct array_dims dims;
    if (array_dims(d->array, d->name, d->in_text, &dims, e) < 0)
        return -1;
    d->layers = dims.layers;
    d->heads = dims.heads;
    d->n = dims.n;
    return 0;
}

static int check_type(const struct dense *d, struct error *e)
{
    const struct mask_request *r = d->request;
    bool is_float = d->array->type == NPY_FLOAT || d->array->type == NPY_BFLOAT;
    if (r->has_threshold && r->has_keep)
        return error_set(e, ERROR_INPUT, "%s: --threshold or --keep is expected, not both",
                         d->name);
    if (r->has_keep && !(r->keep >= 0 && r->keep <= 100))
        return error_set(e, ERROR_INPUT,
                         "--keep %g is out of range, a percentage of 0..100 is "
                         "expected",
                         r->keep);
    if (r->has_threshold && r->threshold != r->threshold)
        return error_set(e, ERROR_INPUT, "--threshold is not a number");
    if (is_float && !r->has_threshold && !r->has_keep)
        return error_set(e, ERROR_INPUT, "%s: a float mask, %s", d->name,
                         d->in_text ? "threshold=T (active where > T) is expected"
                                    : "--threshold T (active where > T) or --keep P (percent a "
                                      "head) is expected " MAKE("T"));
    return 0;
}

static int begin(const struct array_file *a, const struct mask_request *r, bool in_text,
                 struct dense *ret, struct error *e)
{
    *ret =
        (struct dense){.array = &a->array, .name = a->name, .request = r, .in_text = in_text};
    return check_shape(ret, e) < 0 ? -1 : check_type(ret, e);
}

static uint64_t element(const struct dense *d, uint64_t layer, uint64_t head, uint64_t i,
                        uint64_t j)
{
    uint64_t position[] = {layer, head, i, j};
    return npy_index(d->array, position + (4 - d->array->rank));
}

static int fail_at(const struct dense *d, enum bits_problem problem, uint64_t head, uint32_t i,
                   uint32_t j, struct error *e)
{
    const char *what = problem == BITS_NAN ? "NaN" : "a negative integer";
    const char *expected = problem == BITS_NAN ? "numbers are expected"
                           : d->in_text
                               ? "0 or 1 is expected; an additive mask (0 and -10000) needs "
                                 "threshold=, as in threshold=-1"
                               : "0 or 1 is expected; an additive mask (0 and -10000) needs "
                                 "--threshold, as in --threshold -1 " MAKE("-1");
    return error_set(e, ERROR_INPUT, "%s: %s at head %llu, query %u, key %u, %s", d->name, what,
                     (unsigned long long)head, i, j, expected);
}

/* Reads the head, or its transpose in Fortran order. */
static struct pattern *read_stored(const struct dense *d, uint64_t layer, uint64_t head,
                                   struct error *e)
{
    bool transposed = d->array->fortran;
    uint64_t step = transposed ? d->layers * d->heads : 1;
    const double *threshold = d->request->has_threshold ? &d->request->threshold : NULL;
    uint64_t *words = memory_new(((size_t)d->n + 63) / 64, sizeof *words);
    struct pattern *p = pattern_new(d->n);
    for (uint32_t k = 0; k < d->n; k++) {
        const struct npy_row row = {d->array,
                                    transposed ? element(d, layer, head, 0, k)
                                               : element(d, layer, head, k, 0),
                                    step, d->n};
        uint32_t at = 0;
        enum bits_problem problem = bits_read(&row, threshold, words, &at);
        if (problem)
            fail_at(d, problem, head, transposed ? at : k, transposed ? k : at, e);
        else if (!pattern_add_bits(p, k, words))
            error_set(e, ERROR_INPUT, "%s: more than 2^31 runs of active keys", d->name);
        else
            continue;
        pattern_destroy(p);
        p = NULL;
        break;
    }
    free(words);
    return p ? pattern_finish(p) : NULL;
}

static struct pattern *read_kept(const struct dense *d, uint64_t layer, uint64_t head,
                                 struct error *e)
{
    enum { MOST = 1 << 15 };
    if (d->n > MOST) {
        error_set(e, ERROR_INPUT,
                  "%s: --keep sorts a whole head, at most length %d is expected", d->name,
                  MOST);
        return NULL;
    }
    double *value = memory_new((size_t)d->n * d->n, sizeof *value);
    struct pattern *p = NULL;
    for (uint32_t i = 0; i < d->n; i++) {
        for (uint32_t j = 0; j < d->n; j++) {
            double x = npy_get(d->array, element(d, layer, head, i, j));
            if (x != x) {
                fail_at(d, BITS_NAN, head, i, j, e);
                goto out;
            }
            value[(size_t)i * d->n + j] = x;
        }
    }
    p = keep_greatest(value, d->n, d->request->keep);
out:
    free(value);
    return p;
}

static struct pattern *read_head(const struct dense *d, uint64_t layer, uint64_t head,
                                 struct error *e)
{
    if (d->request->has_keep)
        return read_kept(d, layer, head, e);
    struct pattern *p = read_stored(d, layer, head, e);
    if (!p || !d->array->fortran)
        return p;
    struct pattern *transposed = pattern_transpose(p, e);
    pattern_destroy(p);
    return transposed;
}

struct mask *dense_read(const struct array_file *a, const struct mask_request *r,
                        struct error *e)
{
    struct dense d;
    if (begin(a, r, false, &d, e) < 0)
        return NULL;
    uint64_t places = d.layers * d.heads, done = 0;
    struct pattern **given = memory_new(places, sizeof *given);
    while (done < places &&
           (given[done] = read_head(&d, done / d.heads, done % d.heads, e)) != NULL)
        done++;
    struct mask *ret = NULL;
    if (done == places)
        ret = mask_new((uint32_t)d.layers, (uint32_t)d.heads, given, r->name);
    else
        while (done)
            pattern_destroy(given[--done]);
    free(given);
    return ret;
}

struct pattern *dense_read_head(const struct array_file *a, const struct mask_request *r,
                                int64_t head, struct error *e)
{
    struct dense d;
    if (begin(a, r, true, &d, e) < 0)
        return NULL;
    if (d.layers > 1) {
        error_set(e, ERROR_INPUT, "%s: %llu layers, one is expected here", d.name,
                  (unsigned long long)d.layers);
        return NULL;
    }
    if (head < 0 && d.heads > 1) {
        error_set(e, ERROR_INPUT, "%s: %llu heads, head=H is expected", d.name,
                  (unsigned long long)d.heads);
        return NULL;
    }
    if (head >= (int64_t)d.heads) {
        error_set(e, ERROR_INPUT, "%s: head %lld is out of range, 0..%llu is expected", d.name,
                  (long long)head, (unsigned long long)d.heads - 1);
        return NULL;
    }
    return read_head(&d, 0, head < 0 ? 0 : (uint64_t)head, e);
}
