/* SPDX-License-Identifier: Apache-2.0 */
/* The mask of a differentiable attention mask's parameters: the entries that are active without noise. */
#include "masks/base/memory.h"
#include "masks/readers/dam_array.h"
#include <stdlib.h>

/* Adds the maximal runs of a row of n keys. False if they do not fit. */
static bool add_row(struct pattern *p, const struct dam_array *d, uint32_t i,
                    const double *logit)
{
    bool fits = true;
    for (uint32_t j = 0; j < d->n && fits; j++) {
        const uint32_t k = !dam_by_distance(d) ? j : i > j ? i - j : j - i;
        if (logit[k] > 0 || dam_is_border(d, i, j))
            fits = pattern_add(p, i, j, j + 1);
    }
    pattern_row(p, i);
    return fits;
}

/* Reads the head at this index; the heads of a layer are neighbours. */
static struct pattern *read_head(const struct dam_array *d, uint32_t at, struct error *e)
{
    double *logit = memory_new(d->n, sizeof *logit);
    struct pattern *p = pattern_new(d->n);
    int r = 0;
    for (uint32_t i = 0; i < d->n && r == 0; i++) {
        if (i == 0 || !dam_by_distance(d))
            r = dam_logits(d, at / d->heads, at % d->heads, i, logit, e);
        if (r == 0 && !add_row(p, d, i, logit))
            r = error_set(e, ERROR_INPUT, "%s: more than 2^31 runs of active keys",
                          d->file->name);
    }
    free(logit);
    if (r == 0)
        return pattern_finish(p);
    pattern_destroy(p);
    return NULL;
}

struct mask *dam_read(const struct array_file *a, const struct mask_request *r, struct error *e)
{
    struct dam_array d;
    if (dam_array_of(a, r, &d, e) < 0)
        return NULL;
    const uint32_t all = d.layers * d.heads;
    struct pattern **given = memory_new(all, sizeof *given);
    uint32_t done = 0;
    while (done < all && (given[done] = read_head(&d, done, e)) != NULL)
        done++;
    struct mask *ret = NULL;
    if (done == all)
        ret = mask_new(d.layers, d.heads, given, r->name);
    else
        while (done)
            pattern_destroy(given[--done]);
    free(given);
    return ret;
}
