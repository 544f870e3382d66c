/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/backend.h"
#include <stdio.h>

static const struct backend *const backends[] = {&backend_cpu, &backend_cuda,
                                                 &backend_emulated};

const struct backend *backend_find(const char *device, int *ret_ordinal, struct error *e)
{
    const struct device *d;
    if (device_find(device ? device : "cpu", &d, ret_ordinal, e) < 0)
        return NULL;
    if (*ret_ordinal == DEVICE_CURRENT)
        *ret_ordinal = 0;
    if (d->unavailable()[0]) {
        error_set(e, ERROR_UNAVAILABLE, "%s", d->unavailable());
        return NULL;
    }
    for (size_t k = 0; k < sizeof backends / sizeof *backends; k++)
        if (backends[k]->device == d)
            return backends[k];
    error_set(e, ERROR_INPUT, "a model does not run on '%s'", d->name);
    return NULL;
}

void backend_kernel_device(const struct backend *b, int ordinal, char *ret, size_t capacity)
{
    if (b->device == &device_cuda)
        snprintf(ret, capacity, "%s:%d", b->device->name, ordinal);
    else
        snprintf(ret, capacity, "%s", b->device->name);
}
