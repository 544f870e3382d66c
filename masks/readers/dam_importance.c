/* SPDX-License-Identifier: Apache-2.0 */
/* The probabilities of a differentiable attention mask's entries. */
#include "masks/base/memory.h"
#include "masks/readers/dam_array.h"
#include <math.h>
#include <stdlib.h>

static void fill_row(const struct dam_array *d, uint32_t i, const double *logit, float *ret)
{
    for (uint32_t j = 0; j < d->n; j++) {
        const uint32_t k = !dam_by_distance(d) ? j : i > j ? i - j : j - i;
        ret[j] = dam_is_border(d, i, j) ? 1 : (float)(1 / (1 + exp(-logit[k])));
    }
}

static int read_head(const struct dam_array *d, uint32_t layer, uint32_t head, float *ret,
                     struct error *e)
{
    double *logit = memory_new(d->n, sizeof *logit);
    int r = 0;
    for (uint32_t i = 0; i < d->n && r == 0; i++) {
        if (i == 0 || !dam_by_distance(d))
            r = dam_logits(d, layer, head, i, logit, e);
        if (r == 0)
            fill_row(d, i, logit, ret + (size_t)i * d->n);
    }
    free(logit);
    return r;
}

int dam_importance(const struct array_file *a, const struct mask_request *r,
                   struct importance *ret, struct error *e)
{
    struct dam_array d;
    if (dam_array_of(a, r, &d, e) < 0)
        return -1;
    d.finite = true;
    if (r->layer >= (int64_t)d.layers)
        return error_set(e, ERROR_INPUT, "%s: --layer %lld is out of range, 0..%u is expected",
                         a->name, (long long)r->layer, d.layers - 1);
    const uint32_t first = r->layer > 0 ? (uint32_t)r->layer : 0,
                   layers = r->layer < 0 ? d.layers : 1;
    if (importance_new(layers, d.heads, d.n, a->name, ret, e) < 0)
        return -1;
    int failed = 0;
    for (uint32_t k = 0; k < layers * d.heads && !failed; k++)
        failed = read_head(&d, first + k / d.heads, k % d.heads,
                           ret->value + (size_t)k * d.n * d.n, e);
    if (failed)
        importance_finish(ret);
    return failed;
}
