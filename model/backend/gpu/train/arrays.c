/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in the device's memory. */
#include "model/backend/gpu/train/train.h"
#include <stddef.h>

static uint64_t bytes_of(uint64_t count)
{
    return count * sizeof(float);
}

static float *new (struct backend_state *s, uint64_t count, struct error *e)
{
    float *ret = gpu_allocate(s, bytes_of(count), e);
    if (!ret || s->driver->clear(s->gpu, &s->stream, ret, bytes_of(count), e) == 0)
        return ret;
    gpu_release(s, ret);
    return NULL;
}

/* After a failure the second stream may have work on the array left. It ends, as ncclCommAbort came before. */
static void destroy(struct backend_state *s, float *array)
{
    if (!array)
        return;
    gpu_wait_for_streams(s);
    gpu_release(s, array);
}

static float *host(struct backend_state *s, float *array)
{
    (void)s, (void)array;
    return NULL;
}

/* The caller's memory may go when this returns. */
static int write(struct backend_state *s, float *to, uint64_t count, const void *value,
                 struct error *e)
{
    return s->driver->send(s->gpu, &s->stream, to, value, bytes_of(count), e) < 0
               ? -1
               : s->driver->wait(s->gpu, &s->stream, e);
}

static int read(struct backend_state *s, const float *from, uint64_t count, float *ret,
                struct error *e)
{
    return s->driver->fetch(s->gpu, &s->stream, ret, from, bytes_of(count), e);
}

static int clear(struct backend_state *s, float *to, uint64_t count, uint32_t threads,
                 struct error *e)
{
    (void)threads;
    return s->driver->clear(s->gpu, &s->stream, to, bytes_of(count), e);
}

static int drain_on(struct backend_state *s, struct gpu_stream *stream, float *to, float *from,
                    uint64_t count, struct error *e)
{
    const struct train_args args = {.count = count, .x = from, .y = to};
    return s->driver->run_train(s->gpu, stream, TRAIN_OP_ADD, &args, e);
}

static int drain(struct backend_state *s, float *to, float *from, uint64_t count,
                 uint32_t threads, struct error *e)
{
    (void)threads;
    return drain_on(s, &s->stream, to, from, count, e);
}

/* ---- for other libraries ---- */

static int open_beside(struct backend_state *s, struct error *e)
{
    if (!s->beside_open && s->driver->stream_open(s->gpu, false, &s->beside, e) < 0)
        return -1;
    s->beside_open = true;
    return s->driver->follow(s->gpu, &s->beside, &s->stream, e);
}

static int enter(struct backend_state *s, void **ret_stream, struct error *e)
{
    if (ret_stream && open_beside(s, e) < 0)
        return -1;
    if (ret_stream)
        *ret_stream = s->beside.handle;
    return s->driver->enter ? s->driver->enter(s->gpu, e) : 0;
}

static void leave(struct backend_state *s)
{
    if (s->driver->leave)
        s->driver->leave(s->gpu);
}

static int is_idle(struct backend_state *s, bool *ret, struct error *e)
{
    return s->driver->is_idle(s->gpu, &s->beside, ret, e);
}

static int drain_beside(struct backend_state *s, float *to, float *from, uint64_t count,
                        struct error *e)
{
    return drain_on(s, &s->beside, to, from, count, e);
}

const struct training_backend gpu_training = {
    .check = gpu_training_check,
    .array_new = new,
    .array_destroy = destroy,
    .array_bytes = bytes_of,
    .array_host = host,
    .array_write = write,
    .array_read = read,
    .array_clear = clear,
    .array_drain = drain,
    .array_is_finite = gpu_array_is_finite,
    .enter = enter,
    .leave = leave,
    .is_idle = is_idle,
    .drain_beside = drain_beside,
    .gradient_norm = gpu_gradient_norm,
    .update = gpu_update,
    .refill = gpu_refill,
    .repack = gpu_repack,
    .repack_end = gpu_repack_end,
    .workspace_new = gpu_training_new,
    .workspace_destroy = gpu_training_destroy,
    .compute = gpu_train,
    .identity = gpu_training_identity,
    .memory = gpu_training_memory,
    .attention = gpu_training_attention,
    .use = gpu_training_use,
};
