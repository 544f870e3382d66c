/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/gpu/workspace.h"
#include "masks/base/memory.h"
#include <stdlib.h>

struct backend_workspace *gpu_workspace_of(const struct engine *g, struct engine_workspace *w,
                                           struct error *e)
{
    const struct backend_state *s = g->encoder->state;
    if (!w->memory) {
        w->memory = memory_new(1, sizeof *w->memory);
        w->memory->state = s;
        w->memory->recordings.segments = 1;
    }
    if (!w->memory->open && s->driver->stream_open(s->gpu, true, &w->memory->stream, e) < 0)
        return NULL;
    w->memory->open = true;
    return w->memory;
}

int gpu_run_op(struct backend_workspace *m, enum encoder_op op, const struct rows_args *args,
               struct error *e)
{
    const uint64_t elements = (uint64_t)args->rows * args->columns, each = 4 * ROWS_THREADS;
    uint64_t blocks = op == ENCODER_OP_FINISH
                          ? (elements + each - 1) / each
                          : ((uint64_t)args->rows + ROWS_OF_BLOCK - 1) / ROWS_OF_BLOCK;
    return m->state->driver->run_op(m->state->gpu, &m->stream, op, args, blocks, e);
}

int gpu_run_product(struct backend_workspace *m, const struct linear *l, uint32_t rows,
                    const void *x, void *y, struct error *e)
{
    const struct gpu_product p = {l, rows, x, y, .fuse = true};
    bool fused = false;
    if (m->state->driver->product(m->state->gpu, &m->stream, &p, &fused, e) < 0)
        return -1;
    const struct rows_args finish = {.rows = rows,
                                     .columns = l->shape.out,
                                     .after = l->shape.after,
                                     .wide = l->shape.y == ELEMENT_F32,
                                     .bias = l->bias,
                                     .x = y,
                                     .y = y};
    return fused ? 0 : gpu_run_op(m, ENCODER_OP_FINISH, &finish, e);
}

int gpu_grow(struct backend_workspace *m, enum gpu_buffer which, uint64_t bytes,
             struct error *e)
{
    const struct gpu_driver *d = m->state->driver;
    struct gpu *gpu = m->state->gpu;
    if (m->bytes[which] >= bytes)
        return 0;
    if (which <= BUFFER_ATTENTION)
        gpu_recordings_forget(m->state, &m->recordings);
    if (d->wait(gpu, &m->stream, e) < 0)
        return -1;
    gpu_release(m->state, m->buffer[which]);
    m->bytes[which] = 0;
    m->buffer[which] = gpu_allocate(m->state, bytes, e);
    if (!m->buffer[which])
        return -1;
    m->bytes[which] = bytes;
    return d->clear(gpu, &m->stream, m->buffer[which], bytes, e);
}

int gpu_buffer_fetch(struct backend_workspace *m, enum gpu_buffer which, uint64_t bytes,
                     void *ret, struct error *e)
{
    const struct backend_state *s = m->state;
    return s->driver->fetch(s->gpu, &m->stream, ret, m->buffer[which], bytes, e);
}

static void close_stream(struct backend_workspace *m)
{
    const struct gpu_driver *d = m->state->driver;
    struct gpu *gpu = m->state->gpu;
    struct error ignored;
    d->wait(gpu, &m->stream, &ignored);
    gpu_recordings_forget(m->state, &m->recordings);
    for (int k = 0; k < BUFFER_COUNT; k++)
        gpu_release(m->state, m->buffer[k]);
    d->stream_close(gpu, &m->stream);
}

void gpu_workspace_finish(struct backend_workspace *m)
{
    if (!m)
        return;
    if (m->open)
        close_stream(m);
    free(m->staging);
    free(m);
}
