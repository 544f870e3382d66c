/* SPDX-License-Identifier: Apache-2.0 */
#include "model/device/arena.h"
#include "masks/base/memory.h"
#include <stdlib.h>

struct device_arena *device_arena_of(const struct backend *b, struct engine_room *room,
                                     struct error *e)
{
    struct arena *a = arena_of(room);
    if (!a->device) {
        a->device = memory_new(1, sizeof *a->device);
        a->backend = b;
    }
    if (!a->device->open && b->driver->lane_open(b, &a->device->lane, e) < 0)
        return NULL;
    a->device->open = true;
    return a->device;
}

int device_rows(const struct backend *b, struct device_arena *a, enum rows_entry entry,
                const struct rows_args *args, struct error *e)
{
    const uint64_t elements = (uint64_t)args->rows * args->columns, each = 4 * ROWS_THREADS;
    uint64_t blocks = entry == ROWS_FINISH
                          ? (elements + each - 1) / each
                          : ((uint64_t)args->rows + ROWS_OF_BLOCK - 1) / ROWS_OF_BLOCK;
    return b->driver->rows(b, &a->lane, entry, args, blocks, e);
}

int device_product(const struct backend *b, struct device_arena *a, const struct linear *l,
                   uint32_t rows, const void *x, void *y, struct error *e)
{
    bool fused = true;
    if (b->driver->product(b, &a->lane, l, rows, x, y, &fused, e) < 0)
        return -1;
    struct rows_args finish = {.rows = rows,
                               .columns = l->out,
                               .after = l->after,
                               .wide = l->y == ELEMENT_F32,
                               .bias = l->bias,
                               .x = y,
                               .y = y};
    return fused ? 0 : device_rows(b, a, ROWS_FINISH, &finish, e);
}

static void forget_all(const struct backend *b, struct device_arena *a)
{
    for (uint32_t k = 0; k < a->n_recorded; k++)
        if (a->recorded[k].recording)
            b->driver->forget(b, a->recorded[k].recording);
    a->n_recorded = a->next = 0;
}

int device_grow(const struct backend *b, struct device_arena *a, enum device_buffer which,
                uint64_t bytes, struct error *e)
{
    if (a->bytes[which] >= bytes)
        return 0;
    if (which <= BUFFER_ATTENTION)
        forget_all(b, a);
    if (b->driver->wait(b, &a->lane, e) < 0)
        return -1;
    b->driver->release(b, a->buffer[which]);
    a->bytes[which] = 0;
    a->buffer[which] = b->driver->allocate(b, bytes, e);
    if (!a->buffer[which])
        return -1;
    a->bytes[which] = bytes;
    return b->driver->clear(b, &a->lane, a->buffer[which], bytes, e);
}

void device_arena_finish(const struct backend *b, struct device_arena *a)
{
    struct error ignored;
    if (!a)
        return;
    if (a->open) {
        b->driver->wait(b, &a->lane, &ignored);
        forget_all(b, a);
        for (int k = 0; k < BUFFER_COUNT; k++)
            b->driver->release(b, a->buffer[k]);
        b->driver->lane_close(b, &a->lane);
    }
    free(a->staging);
    free(a);
}
