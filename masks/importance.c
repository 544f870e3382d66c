/* SPDX-License-Identifier: Apache-2.0 */
#include "masks/importance.h"
#include "masks/base/memory.h"
#include "masks/base/text.h"
#include <math.h>
#include <stdlib.h>

#define MAX_BYTES (UINT64_C(1) << 33)

int importance_new(uint64_t layers, uint64_t heads, uint32_t n, const char *name,
                   struct importance *ret, struct error *e)
{
    uint64_t entries = (uint64_t)n * n;
    if (entries > MAX_BYTES / sizeof(float) / (layers * heads))
        return error_set(e, ERROR_INPUT,
                         "%s: %llu x %u x %u values are too large (2^33 bytes as floats)", name,
                         (unsigned long long)(layers * heads), n, n);
    *ret = (struct importance){(uint32_t)layers, (uint32_t)heads, n,
                               memory_new(layers * heads * entries, sizeof(float))};
    return 0;
}

void importance_finish(struct importance *p)
{
    free(p->value);
    *p = (struct importance){0};
}

static int refuse(const struct importance *p, size_t at, const char *name, struct error *e)
{
    float x = p->value[at];
    const char *what = x != x ? "NaN" : x < 0 ? "a negative value" : "an infinite value";
    size_t entries = (size_t)p->n * p->n, place = at / entries;
    struct text where = {0};
    if (p->layers > 1)
        text_add(&where, "layer %zu, ", place / p->heads);
    text_add(&where, "head %zu, query %zu, key %zu", place % p->heads, at % entries / p->n,
             at % p->n);
    error_set(e, ERROR_INPUT, "%s: %s at %s, an importance of 0 or more is expected", name,
              what, text_get(&where));
    text_finish(&where);
    return -1;
}

int importance_check(const struct importance *p, const char *name, struct error *e)
{
    size_t count = (size_t)p->layers * p->heads * p->n * p->n;
    bool any = false;
    for (size_t k = 0; k < count; k++) {
        if (!(p->value[k] >= 0) || isinf(p->value[k]))
            return refuse(p, k, name, e);
        any |= p->value[k] > 0;
    }
    if (!any)
        return error_set(e, ERROR_INPUT, "%s: no value is above zero, nothing to keep", name);
    return 0;
}
