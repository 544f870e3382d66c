/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a backend that runs on a driver, and its weights. */
#include "model/backend/gpu/gpu.h"
#include "masks/base/memory.h"
#include <stdlib.h>

_Static_assert((int)ROWS_AFTER_GELU == (int)AFTER_GELU &&
                   (int)ROWS_AFTER_GELU_TANH == (int)AFTER_GELU_TANH &&
                   (int)ROWS_AFTER_RELU == (int)AFTER_RELU &&
                   (int)ROWS_AFTER_SILU == (int)AFTER_SILU &&
                   (int)ROWS_AFTER_TANH == (int)AFTER_TANH,
               "one number for one activation");

struct backend_state *gpu_open(const struct backend *b, const struct backend_options *o,
                               struct error *e)
{
    const struct encoder_ops_shape ops = {o->dtype == ELEMENT_BF16 ? MASKC_BF16 : MASKC_F32,
                                          o->hidden, o->trains};
    struct gpu *gpu = b->driver->open(o->ordinal, &ops, e);
    if (!gpu)
        return NULL;
    struct backend_state *s = memory_new(1, sizeof *s);
    s->driver = b->driver;
    s->gpu = gpu;
    s->dtype = o->dtype;
    s->outline = o->outline;
    s->memory = gpu_memory_new();
    pthread_mutex_init(&s->packs.lock, NULL);
    if (!o->trains || b->driver->stream_open(gpu, true, &s->stream, e) == 0) {
        s->trains = o->trains;
        return s;
    }
    gpu_close(s);
    return NULL;
}

void gpu_wait_for_streams(struct backend_state *s)
{
    struct error ignored;
    if (s->beside_open)
        s->driver->wait(s->gpu, &s->beside, &ignored);
    s->driver->wait(s->gpu, &s->stream, &ignored);
}

void gpu_close(struct backend_state *s)
{
    if (!s)
        return;
    if (s->trains) {
        gpu_wait_for_streams(s);
        s->driver->stream_close(s->gpu, &s->stream);
    }
    if (s->beside_open)
        s->driver->stream_close(s->gpu, &s->beside);
    gpu_optimizer_finish(s);
    gpu_packs_finish(s);
    for (uint32_t k = 0; k < s->n_kept; k++)
        gpu_release(s, s->kept[k]);
    s->driver->close(s->gpu);
    gpu_memory_destroy(s->memory);
    free(s->no_graphs);
    free(s->kept);
    free(s);
}

/* ---- weights ---- */

/* Every step runs over the whole batch, so that to cut the intermediate size into slices would save no memory. */
struct feed_form gpu_feed_form(const struct model_config *c, enum element dtype)
{
    (void)c, (void)dtype;
    return (struct feed_form){.slices = 1};
}

static void *keep_bytes(struct backend_state *s, const void *bytes, uint64_t size,
                        struct error *e)
{
    struct gpu_stream none = {0};
    if (s->outline) {
        s->kept_bytes += size;
        return NULL;
    }
    void *p = gpu_allocate(s, size, e);
    if (!p)
        return NULL;
    *MEMORY_PUSH(s->kept, s->n_kept, s->kept_capacity) = p;
    s->kept_bytes += size;
    return s->driver->send(s->gpu, &none, p, bytes, size, e) < 0 ? NULL : p;
}

void *gpu_keep(struct backend_state *s, enum element type, const float *value, uint64_t count,
               struct error *e)
{
    void *bytes = s->outline ? NULL : memory_new(count, element_bytes(type));
    if (value && bytes)
        elements_from_f32(type, value, count, bytes);
    void *p = keep_bytes(s, bytes, count * element_bytes(type), e);
    free(bytes);
    return p;
}

int gpu_pack(struct backend_state *s, const struct linear_shape *shape, const float *weight,
             const float *bias, struct linear *ret, struct error *e)
{
    struct linear l = {.shape = *shape};
    l.packed = gpu_keep(s, shape->x, weight, (uint64_t)shape->in * shape->out, e);
    if (!l.packed && !s->outline)
        return -1;
    l.bias = gpu_keep(s, ELEMENT_F32, bias, shape->out, e);
    if (!l.bias && !s->outline)
        return -1;
    l.fused_bias =
        shape->y == ELEMENT_F32 ? l.bias : gpu_keep(s, shape->y, bias, shape->out, e);
    if (!l.fused_bias && !s->outline)
        return -1;
    *ret = l;
    return 0;
}

int gpu_wait_for_training(struct backend_state *s, struct error *e)
{
    return s->trains ? s->driver->wait(s->gpu, &s->stream, e) : 0;
}
