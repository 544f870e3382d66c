/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/mirror.h"
#include "masks/base/memory.h"
#include <stdlib.h>

const float *array_view(const struct training_device *d, float *array, const float *from,
                        uint64_t count, float **ret_own, struct error *e)
{
    const float *host = d->does->array_host(d->state, array);
    *ret_own = NULL;
    if (host)
        return host + (from - array);
    float *copy = memory_new(count, sizeof *copy);
    if (d->does->array_read(d->state, from, count, copy, e) == 0)
        return *ret_own = copy;
    free(copy);
    return NULL;
}

void mirror_begin(const struct training_device *d, float *array, uint64_t count,
                  struct mirror *ret)
{
    float *host = d->does->array_host(d->state, array);
    *ret = (struct mirror){*d, array, host ? host : memory_aligned(count, sizeof *host), count};
}

void mirror_finish(struct mirror *m)
{
    if (m->host != m->array)
        free(m->host);
    *m = (struct mirror){0};
}

int mirror_write(const struct mirror *m, struct error *e)
{
    return m->host == m->array
               ? 0
               : m->device.does->array_write(m->device.state, m->array, m->count, m->host, e);
}

int mirror_read(const struct mirror *m, struct error *e)
{
    return m->host == m->array
               ? 0
               : m->device.does->array_read(m->device.state, m->array, m->count, m->host, e);
}
