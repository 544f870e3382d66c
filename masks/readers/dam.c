/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of SparseBERT's differentiable attention mask (Shi et al. 2021): its code keeps
   two logits a distance and head, component 0 meaning active; the paper's general form keeps an
   alpha per entry. Evaluated without noise. */
#include "masks/base/memory.h"
#include "masks/readers/readers.h"
#include <math.h>
#include <stdlib.h>

struct dam {
    const struct npy *array;
    const char *name;
    bool distances; /* [H,n,2] */
    uint32_t heads, n;
};

static int check(struct dam *d, const struct mask_request *r, struct error *e)
{
    const struct npy *a = d->array;
    if (a->type != NPY_FLOAT && a->type != NPY_BFLOAT)
        return error_set(e, ERROR_INPUT, "%s: --dam, parameters as floats are expected",
                         d->name);
    if (r->has_threshold || r->has_keep)
        return error_set(e, ERROR_INPUT,
                         "%s: --dam decides by itself, --threshold and --keep do not "
                         "go with it",
                         d->name);
    uint64_t n = a->rank == 3 ? a->shape[1] : 0;
    if (a->rank != 3 || (a->shape[2] != 2 && a->shape[2] != n))
        return error_set(e, ERROR_INPUT,
                         "%s: --dam, parameters [H,n,2] or [H,n,n] are expected", d->name);
    if (n == 2)
        return error_set(e, ERROR_INPUT,
                         "%s: --dam, [H,2,2] may be logits or alpha; a length other "
                         "than 2 is expected",
                         d->name);
    if (n < 1 || n > PATTERN_MAX_N || a->shape[0] < 1 || a->shape[0] > MASK_MAX_HEADS)
        return error_set(e, ERROR_INPUT,
                         "%s: %llu heads of length %llu, 1..%d and 1..%d are expected", d->name,
                         (unsigned long long)a->shape[0], (unsigned long long)n, MASK_MAX_HEADS,
                         PATTERN_MAX_N);
    if (r->n > n)
        return error_set(e, ERROR_INPUT, "%s: -n %u is larger than the parameters' length %llu",
                         d->name, r->n, (unsigned long long)n);
    d->distances = a->shape[2] == 2;
    d->heads = (uint32_t)a->shape[0];
    d->n = r->n ? r->n : (uint32_t)n;
    return 0;
}

static double parameter(const struct dam *d, uint64_t head, uint64_t a, uint64_t b)
{
    return npy_get(d->array, npy_index(d->array, (uint64_t[]){head, a, b}));
}

static int fail_at(const struct dam *d, uint32_t head, uint32_t a, uint32_t b, struct error *e)
{
    return error_set(e, ERROR_INPUT, "%s: NaN at [%u,%u,%u], numbers are expected", d->name,
                     head, a, b);
}

/* Whether each distance is active: a0 > a1. */
static int read_distances(const struct dam *d, uint32_t head, bool *active, struct error *e)
{
    for (uint32_t k = 0; k < d->n; k++) {
        double on = parameter(d, head, k, 0), off = parameter(d, head, k, 1);
        if (on != on || off != off)
            return fail_at(d, head, k, off != off, e);
        active[k] = on > off;
    }
    return 0;
}

static int read_alphas(const struct dam *d, uint32_t head, uint32_t i, bool *active,
                       struct error *e)
{
    for (uint32_t j = 0; j < d->n; j++) {
        double alpha = parameter(d, head, i, j);
        if (alpha != alpha)
            return fail_at(d, head, i, j, e);
        active[j] = alpha > 0;
    }
    return 0;
}

static bool is_border(const struct dam *d, uint32_t k)
{
    return k == 0 || k + 1 == d->n;
}

/* Maximal runs of a row of n flags; by_distance: the flag of key j is active[|i - j|]. */
static bool add_row(struct pattern *p, const struct dam *d, uint32_t i, const bool *active,
                    bool border)
{
    bool fits = true;
    for (uint32_t j = 0; j < d->n && fits; j++) {
        uint32_t flag = !d->distances ? j : i > j ? i - j : j - i;
        if (active[flag] || (border && (is_border(d, i) || is_border(d, j))))
            fits = pattern_add(p, i, j, j + 1);
    }
    pattern_row(p, i);
    return fits;
}

static struct pattern *read_head(const struct dam *d, uint32_t head, bool border,
                                 struct error *e)
{
    bool *active = memory_new(d->n, sizeof *active);
    struct pattern *p = pattern_new(d->n);
    int r = d->distances ? read_distances(d, head, active, e) : 0;
    for (uint32_t i = 0; i < d->n && r == 0; i++) {
        if (!d->distances)
            r = read_alphas(d, head, i, active, e);
        if (r == 0 && !add_row(p, d, i, active, border))
            r = error_set(e, ERROR_INPUT, "%s: more than 2^31 runs of active keys", d->name);
    }
    free(active);
    if (r == 0)
        return pattern_finish(p);
    pattern_destroy(p);
    return NULL;
}

struct mask *dam_read(const struct array_file *a, const struct mask_request *r, struct error *e)
{
    struct dam d = {.array = &a->array, .name = a->name};
    if (check(&d, r, e) < 0)
        return NULL;
    struct pattern **given = memory_new(d.heads, sizeof *given);
    uint32_t done = 0;
    while (done < d.heads && (given[done] = read_head(&d, done, r->border, e)) != NULL)
        done++;
    struct mask *ret = NULL;
    if (done == d.heads)
        ret = mask_new(1, d.heads, given, r->name);
    else
        while (done)
            pattern_destroy(given[--done]);
    free(given);
    return ret;
}

/* The parameter whose logistic function is the probability of (i, j); not finite where one of the file's is not. */
static double logit(const struct dam *d, uint32_t head, uint32_t i, uint32_t j, uint32_t at[2])
{
    at[0] = !d->distances ? i : i > j ? i - j : j - i;
    at[1] = d->distances ? 0 : j;
    double on = parameter(d, head, at[0], at[1]);
    double off = d->distances ? parameter(d, head, at[0], 1) : 0;
    at[1] += d->distances && isfinite(on);
    return on - off;
}

static int read_probabilities(const struct dam *d, uint32_t head, bool border, float *ret,
                              struct error *e)
{
    for (uint32_t i = 0; i < d->n; i++) {
        for (uint32_t j = 0; j < d->n; j++) {
            uint32_t at[2];
            double x = logit(d, head, i, j, at);
            if (!isfinite(x))
                return error_set(e, ERROR_INPUT,
                                 "%s: %s at [%u,%u,%u], finite numbers are expected", d->name,
                                 x != x ? "NaN" : "an infinite value", head, at[0], at[1]);
            bool on = border && (is_border(d, i) || is_border(d, j));
            *ret++ = on ? 1 : (float)(1 / (1 + exp(-x)));
        }
    }
    return 0;
}

int dam_importance(const struct array_file *a, const struct mask_request *r,
                   struct importance *ret, struct error *e)
{
    struct dam d = {.array = &a->array, .name = a->name};
    if (check(&d, r, e) < 0 || importance_new(1, d.heads, d.n, d.name, ret, e) < 0)
        return -1;
    int failed = 0;
    for (uint32_t h = 0; h < d.heads && !failed; h++)
        failed = read_probabilities(&d, h, r->border, ret->value + (size_t)h * d.n * d.n, e);
    if (failed)
        importance_finish(ret);
    return failed;
}
