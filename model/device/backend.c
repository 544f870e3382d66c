/* SPDX-License-Identifier: Apache-2.0 */
/* What both drivers share: finding them by name, and weights on the device. */
#include "model/device/backend.h"
#include "masks/base/memory.h"
#include "runtime/device/device.h"
#include <stdlib.h>

const char *const rows_entries[ROWS_ENTRIES] = {
    [ROWS_EMBED] = "rows_embed",   [ROWS_NORM] = "rows_norm", [ROWS_FINISH] = "rows_finish",
    [ROWS_GATHER] = "rows_gather", [ROWS_MEAN] = "rows_mean",
};

_Static_assert((int)ROWS_AFTER_GELU == (int)AFTER_GELU &&
                   (int)ROWS_AFTER_GELU_TANH == (int)AFTER_GELU_TANH &&
                   (int)ROWS_AFTER_RELU == (int)AFTER_RELU &&
                   (int)ROWS_AFTER_SILU == (int)AFTER_SILU &&
                   (int)ROWS_AFTER_TANH == (int)AFTER_TANH,
               "one number for one activation");

static const struct backend_driver *driver_of(const struct device *d)
{
    return d == &device_cuda ? &backend_cuda : d == &device_emulated ? &backend_emulated : NULL;
}

static int open_driver(struct backend *b, const struct device *d, const struct rows_features *f,
                       struct error *e)
{
    if (d->unavailable()[0])
        return error_set(e, ERROR_UNAVAILABLE, "%s", d->unavailable());
    struct source *rows = rows_source(f);
    int r = b->driver->open(b, b->ordinal, rows, e);
    source_destroy(rows);
    return r;
}

int backend_open(const char *name, const struct rows_features *f, struct backend **ret,
                 struct error *e)
{
    const struct device *d;
    int ordinal;
    *ret = NULL;
    if (device_find(name, &d, &ordinal, e) < 0)
        return -1;
    if (!d || !driver_of(d))
        return 0;
    struct backend *b = memory_new(1, sizeof *b);
    b->driver = driver_of(d);
    b->ordinal = ordinal;
    if (open_driver(b, d, f, e) < 0) {
        backend_close(b);
        return -1;
    }
    *ret = b;
    return 0;
}

void backend_close(struct backend *b)
{
    if (!b)
        return;
    for (uint32_t k = 0; k < b->n_kept; k++)
        b->driver->release(b, b->kept[k]);
    b->driver->close(b);
    free(b->kept);
    free(b);
}

/* ---- weights ---- */

void *backend_keep(struct backend *b, const void *bytes, uint64_t size, struct error *e)
{
    void *p = b->driver->allocate(b, size, e);
    if (!p)
        return NULL;
    *MEMORY_PUSH(b->kept, b->n_kept, b->kept_room) = p;
    struct lane none = {0};
    return b->driver->send(b, &none, p, bytes, size, e) < 0 ? NULL : p;
}

static void *keep_as(struct backend *b, enum element type, const float *value, uint64_t count,
                     struct error *e)
{
    void *bytes = memory_new(count, element_bytes(type));
    elements_from_f32(type, value, count, bytes);
    void *p = backend_keep(b, bytes, count * element_bytes(type), e);
    free(bytes);
    return p;
}

int backend_linear(struct backend *b, const struct linear_shape *shape, const float *weight,
                   const float *bias, struct linear *ret, struct error *e)
{
    struct linear l = {shape->in, shape->out, shape->x, shape->y, shape->after};
    l.packed = keep_as(b, shape->x, weight, (uint64_t)shape->in * shape->out, e);
    if (!l.packed)
        return -1;
    l.bias = keep_as(b, ELEMENT_F32, bias, shape->out, e);
    l.fused_bias = shape->y == ELEMENT_F32 ? l.bias : keep_as(b, shape->y, bias, shape->out, e);
    if (!l.bias || !l.fused_bias)
        return -1;
    *ret = l;
    return 0;
}

int backend_norm(struct backend *b, struct norm *n, struct error *e)
{
    uint64_t bytes = n->size * sizeof(float);
    float *gain = backend_keep(b, n->gain, bytes, e),
          *shift = gain ? backend_keep(b, n->shift, bytes, e) : NULL;
    free(n->gain);
    free(n->shift);
    n->gain = gain;
    n->shift = shift;
    return shift ? 0 : -1;
}
