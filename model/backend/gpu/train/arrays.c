/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in the device's memory, and weights for its products made of them. */
#include "model/backend/gpu/train/train.h"
#include <stddef.h>

static int run(struct backend_state *s, enum train_op op, const struct train_args *a,
               struct error *e)
{
    return s->driver->run_train(s->gpu, &s->stream, op, a, e);
}

static uint64_t bytes_of(uint64_t count)
{
    return count * sizeof(float);
}

static float *new (struct backend_state *s, uint64_t count, struct error *e)
{
    float *ret = s->driver->allocate(s->gpu, bytes_of(count), e);
    if (!ret || s->driver->clear(s->gpu, &s->stream, ret, bytes_of(count), e) == 0)
        return ret;
    s->driver->release(s->gpu, ret);
    return NULL;
}

static void destroy(struct backend_state *s, float *array)
{
    struct error ignored;
    if (!array)
        return;
    s->driver->wait(s->gpu, &s->stream, &ignored);
    s->driver->release(s->gpu, array);
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

static int drain(struct backend_state *s, float *to, float *from, uint64_t count,
                 uint32_t threads, struct error *e)
{
    (void)threads;
    return run(s, TRAIN_OP_ADD, &(struct train_args){.count = count, .x = from, .y = to}, e);
}

/* ---- weights ---- */

/* The longest rows that count has and that a tile fills. */
static uint32_t columns_of(uint64_t count)
{
    uint32_t columns = 4096;
    while (columns > TRAIN_TILE && count % columns)
        columns /= 2;
    return count % columns ? (uint32_t)count : columns;
}

/* count elements of a type from f32. */
static int convert(struct backend_state *s, enum element type, const float *value,
                   uint64_t count, void *to, struct error *e)
{
    const uint32_t columns = columns_of(count);
    return run(s, TRAIN_OP_PACK,
               &(struct train_args){.rows = (uint32_t)(count / columns),
                                    .columns = columns,
                                    .wide_y = type == ELEMENT_F32,
                                    .row = columns,
                                    .column = 1,
                                    .x = value,
                                    .y = to},
               e);
}

static int refill(struct backend_state *s, void *kept, enum element type, const float *value,
                  uint64_t count, struct error *e)
{
    return convert(s, type, value, count, kept, e);
}

static int pack_bias(struct backend_state *s, const struct linear *l, const float *bias,
                     struct error *e)
{
    const uint32_t out = l->shape.out;
    const bool two = l->fused_bias != l->bias;
    if (bias)
        return convert(s, ELEMENT_F32, bias, out, l->bias, e) < 0 ? -1
               : two ? convert(s, l->shape.y, bias, out, l->fused_bias, e)
                     : 0;
    if (s->driver->clear(s->gpu, &s->stream, l->bias, bytes_of(out), e) < 0)
        return -1;
    return two ? s->driver->clear(s->gpu, &s->stream, l->fused_bias,
                                  out * element_bytes(l->shape.y), e)
               : 0;
}

/* From arrays of the device. */
static int pack(struct backend_state *s, const struct linear *l,
                const struct weight_view *weight, const float *bias, struct error *e)
{
    const struct train_args args = {.rows = l->shape.out,
                                    .columns = l->shape.in,
                                    .wide_y = l->shape.x == ELEMENT_F32,
                                    .row = weight->row,
                                    .column = weight->column,
                                    .x = weight->value,
                                    .y = l->packed};
    return run(s, TRAIN_OP_PACK, &args, e) < 0 ? -1 : pack_bias(s, l, bias, e);
}

/* By way of an array. */
static int pack_from_host(struct backend_state *s, const struct linear *l,
                          const struct weight_view *weight, const float *bias, struct error *e)
{
    const uint64_t count = (uint64_t)l->shape.in * l->shape.out;
    float *array = new (s, count + l->shape.out, e);
    const struct weight_view view = {array, weight->row, weight->column, false};
    int r = array ? write(s, array, count, weight->value, e) : -1;
    if (r == 0 && bias)
        r = write(s, array + count, l->shape.out, bias, e);
    if (r == 0)
        r = pack(s, l, &view, bias ? array + count : NULL, e);
    destroy(s, array);
    return r;
}

static int repack(struct backend_state *s, const struct linear *l,
                  const struct weight_view *weight, const float *bias, struct error *e)
{
    return (weight->on_host ? pack_from_host : pack)(s, l, weight, bias, e);
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
    .gradient_norm = gpu_gradient_norm,
    .update = gpu_update,
    .refill = refill,
    .repack = repack,
    .workspace_new = gpu_training_new,
    .workspace_destroy = gpu_training_destroy,
    .compute = gpu_train,
    .identity = gpu_training_identity,
    .memory = gpu_training_memory,
    .attention = gpu_training_attention,
};
