/* SPDX-License-Identifier: Apache-2.0 */
/* Heads on a device: rows of the hidden states that the last pass left there, through one product or
   two. */
#include "masks/base/memory.h"
#include "model/device/arena.h"
#include <stdlib.h>

struct head {
    const struct backend *b;
    struct device_arena *arena;
    uint32_t rows;
    struct error *e;
};

static int gather(const struct head *h, const uint32_t *rows, uint64_t row_bytes)
{
    void **at = h->arena->buffer;
    struct rows_args a = {.rows = h->rows};
    if (device_grow(h->b, h->arena, BUFFER_INDEX, h->rows * sizeof *rows, h->e) < 0 ||
        device_grow(h->b, h->arena, BUFFER_GATHERED, h->rows * row_bytes, h->e) < 0 ||
        h->b->driver->send(h->b, &h->arena->lane, at[BUFFER_INDEX], rows,
                           h->rows * sizeof *rows, h->e) < 0)
        return -1;
    a.number = at[BUFFER_INDEX];
    a.x = at[BUFFER_HIDDEN];
    a.y = at[BUFFER_GATHERED];
    return device_rows(h->b, h->arena, ROWS_GATHER, &a, h->e);
}

static int product(const struct head *h, const struct linear *l, const void *x,
                   enum device_buffer to)
{
    uint64_t bytes = (uint64_t)h->rows * l->out * element_bytes(l->y);
    return device_grow(h->b, h->arena, to, bytes, h->e) < 0
               ? -1
               : device_product(h->b, h->arena, l, h->rows, x, h->arena->buffer[to], h->e);
}

static int normalise(const struct head *h, const struct norm *n)
{
    struct rows_args a = {.rows = h->rows,
                          .eps = n->eps,
                          .gain = n->gain,
                          .shift = n->shift,
                          .x = h->arena->buffer[BUFFER_BETWEEN],
                          .y = h->arena->buffer[BUFFER_GATHERED]};
    return device_rows(h->b, h->arena, ROWS_NORM, &a, h->e);
}

/* A head's result as f32. */
static int fetch(const struct head *h, const struct linear *l, enum device_buffer from,
                 float *ret)
{
    const uint64_t count = (uint64_t)h->rows * l->out, bytes = count * element_bytes(l->y);
    void *own = memory_new(bytes, 1);
    int r =
        h->b->driver->fetch(h->b, &h->arena->lane, own, h->arena->buffer[from], bytes, h->e);
    if (r == 0)
        elements_to_f32(l->y, own, count, ret);
    free(own);
    return r;
}

int device_head(const struct engine *g, struct engine_room *room, const struct linear *first,
                const struct norm *norm, const struct linear *last, const uint32_t *rows,
                uint32_t n, float *ret, struct error *e)
{
    const struct backend *b = g->encoder->backend;
    struct head h = {b, device_arena_of(b, room, e), n, e};
    if (!h.arena || gather(&h, rows, g->config.hidden * (uint64_t)element_bytes(g->dtype)) < 0)
        return -1;
    enum device_buffer at = BUFFER_GATHERED;
    if (first) {
        if (product(&h, first, h.arena->buffer[at], BUFFER_BETWEEN) < 0)
            return -1;
        at = BUFFER_BETWEEN;
    }
    if (norm) {
        if (normalise(&h, norm) < 0)
            return -1;
        at = BUFFER_GATHERED;
    }
    if (!last)
        return fetch(&h, first, at, ret);
    return product(&h, last, h.arena->buffer[at], BUFFER_LOGITS) < 0
               ? -1
               : fetch(&h, last, BUFFER_LOGITS, ret);
}

int device_mean(const struct engine *g, struct engine_room *room, float *ret, struct error *e)
{
    const struct backend *b = g->encoder->backend;
    const uint64_t bytes = (uint64_t)room->sequences * g->config.hidden * sizeof *ret;
    struct device_arena *a = device_arena_of(b, room, e);
    if (!a || device_grow(b, a, BUFFER_LOGITS, bytes, e) < 0)
        return -1;
    const uint32_t *input = a->buffer[BUFFER_INPUT];
    struct rows_args args = {.rows = room->sequences,
                             .offsets = (const int32_t *)(input + 3 * (uint64_t)a->tokens),
                             .x = a->buffer[BUFFER_HIDDEN],
                             .y = a->buffer[BUFFER_LOGITS]};
    return device_rows(b, a, ROWS_MEAN, &args, e) < 0
               ? -1
               : b->driver->fetch(b, &a->lane, ret, a->buffer[BUFFER_LOGITS], bytes, e);
}
