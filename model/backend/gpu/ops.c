/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of model/ops/ops.h on a driver. */
#include "masks/base/memory.h"
#include "model/backend/gpu/op_batch.h"
#include <omp.h>
#include <stdlib.h>

/* The time of a phase is known when the stream has nothing left to do. */
static int lap(struct op_batch *p, enum engine_phase phase, struct error *e)
{
    if (!p->seconds)
        return 0;
    if (p->driver->wait(p->c->state->gpu, &p->memory->stream, e) < 0)
        return -1;
    double now = omp_get_wtime();
    p->seconds[phase] += now - p->since;
    p->since = now;
    return 0;
}

static int embed(struct op_batch *p, void *y, struct error *e)
{
    const struct embeddings *m = &p->c->embeddings;
    const uint32_t *input = p->memory->buffer[BUFFER_INPUT], tokens = p->size.tokens;
    const struct rows_args args = {.rows = tokens,
                                   .eps = m->norm.eps,
                                   .number = input,
                                   .position = input + tokens,
                                   .type = input + 2 * (uint64_t)tokens,
                                   .words = m->words,
                                   .positions = m->positions,
                                   .types = m->types,
                                   .gain = m->norm.gain,
                                   .shift = m->norm.shift,
                                   .y = y};
    return gpu_run_op(p->memory, ENCODER_OP_EMBED, &args, e);
}

static int linear(struct op_batch *p, const struct op_linear *o, struct error *e)
{
    const struct rows_args args = {.rows = p->size.tokens,
                                   .columns = o->l->shape.out / 2,
                                   .after = (uint32_t)o->glu,
                                   .x = o->pre,
                                   .y = o->y};
    if (o->glu == AFTER_NONE)
        return gpu_run_product(p->memory, o->l, p->size.tokens, o->x, o->y, e);
    return gpu_run_product(p->memory, o->l, p->size.tokens, o->x, o->pre, e) < 0
               ? -1
               : gpu_run_op(p->memory, ENCODER_OP_GLU, &args, e);
}

static int rotate(struct op_batch *p, uint32_t layer, void *x, bool back, struct error *e)
{
    const struct attention *a = &p->c->attention;
    const float *angle = p->c->rotation[config_layer_is_global(&p->g->config, layer)];
    const uint32_t *input = p->memory->buffer[BUFFER_INPUT], half = a->head_dim / 2;
    const struct rows_args args = {.rows = p->size.tokens,
                                   .columns = 3 * a->heads * a->padded_dim,
                                   .heads = 2 * a->heads,
                                   .half = half,
                                   .head = a->padded_dim,
                                   .position = input + p->size.tokens,
                                   .gain = angle,
                                   .shift = angle + (uint64_t)p->g->config.positions * half,
                                   .y = x};
    (void)back; /* GPUs do not train */
    return gpu_run_op(p->memory, ENCODER_OP_ROTATE, &args, e);
}

/* x is rounded already: a residual to add to nothing. */
static int norm(struct op_batch *p, const struct op_norm *o, struct error *e)
{
    const struct rows_args args = {.rows = p->size.tokens,
                                   .eps = o->norm->eps,
                                   .gain = o->norm->gain,
                                   .shift = o->norm->shift,
                                   .residual = o->x,
                                   .y = o->y};
    return gpu_run_op(p->memory, ENCODER_OP_NORM, &args, e);
}

/* ---- the end of a block ---- */

/* sum = x W^T */
static int plain_product(const struct op_batch *p, const struct op_close *o, struct error *e)
{
    void **at = p->memory->buffer;
    const struct gpu_product plain = {o->l, p->size.tokens, o->x, at[BUFFER_SUM],
                                      .fuse = false};
    bool fused;
    return p->driver->product(p->c->state->gpu, &p->memory->stream, &plain, &fused, e);
}

/* y = sum + bias + residual, or its norm */
static int add(const struct op_batch *p, const struct op_close *o, struct error *e)
{
    const struct norm *n = o->norm.norm;
    struct rows_args args = {.rows = p->size.tokens,
                             .bias = o->l->bias,
                             .x = p->memory->buffer[BUFFER_SUM],
                             .residual = o->residual,
                             .y = o->y};
    if (!n)
        return gpu_run_op(p->memory, ENCODER_OP_ADD, &args, e);
    args.eps = n->eps;
    args.gain = n->gain;
    args.shift = n->shift;
    return gpu_run_op(p->memory, ENCODER_OP_NORM, &args, e);
}

static int close(struct op_batch *p, const struct op_close *o, struct error *e)
{
    if (plain_product(p, o, e) < 0 || lap(p, o->phase, e) < 0)
        return -1;
    return add(p, o, e) < 0 ? -1 : lap(p, PHASE_NORMS, e);
}

/* ---- attention ---- */

struct attention_call gpu_attention_call(const struct op_batch *p, uint32_t layer)
{
    void **at = p->memory->buffer;
    const uint32_t *input = at[BUFFER_INPUT];
    uint64_t most = (uint64_t)p->size.sequences * p->size.longest;
    return (struct attention_call){
        .layer = layer,
        .sequences = p->size.sequences,
        .longest = p->size.longest,
        .tokens = p->size.tokens < most ? p->size.tokens : most,
        .offsets = (const int32_t *)(input + 3 * (uint64_t)p->size.tokens),
        .projection = at[BUFFER_PROJECTION],
        .context = at[BUFFER_CONTEXT],
        .lse = at[BUFFER_LSE],
        .workspace = at[BUFFER_ATTENTION],
        .workspace_bytes = p->memory->bytes[BUFFER_ATTENTION],
        .stream = p->memory->stream.handle,
        .bias = p->c->relative,
    };
}

/* A watch sees copies on the host. */
static int show(const struct op_batch *p, uint32_t layer, struct error *e)
{
    const struct attention *a = &p->c->attention;
    const struct engine_watch *w = p->workspace->watch;
    uint64_t columns = (uint64_t)a->heads * a->padded_dim, element = element_bytes(p->g->dtype);
    uint64_t bytes = p->workspace->tokens * 3 * columns * element;
    uint64_t hidden_bytes = p->workspace->tokens * (uint64_t)p->g->config.hidden * element;
    uint8_t *copy = memory_new(bytes, 1), *hidden = memory_new(hidden_bytes, 1);
    int r = gpu_buffer_fetch(p->memory, BUFFER_PROJECTION, bytes, copy, e);
    if (r == 0)
        r = gpu_buffer_fetch(p->memory, BUFFER_HIDDEN, hidden_bytes, hidden, e);
    if (r == 0)
        w->layer(w->context, &(struct engine_layer){layer, copy, copy + columns * element,
                                                    copy + 2 * columns * element, 3 * columns,
                                                    a->padded_dim, hidden});
    free(copy);
    free(hidden);
    return r;
}

static int attend(struct op_batch *p, uint32_t layer, struct error *e)
{
    struct attention_call call = gpu_attention_call(p, layer);
    if (p->workspace->watch && show(p, layer, e) < 0)
        return -1;
    return attention_run(&p->c->attention, &call, e);
}

struct layer_tape gpu_layer(const struct op_batch *p)
{
    void **at = p->memory->buffer;
    return (struct layer_tape){.hidden = at[BUFFER_HIDDEN],
                               .attention_in = at[BUFFER_NORMED],
                               .projection = at[BUFFER_PROJECTION],
                               .context = at[BUFFER_CONTEXT],
                               .lse = at[BUFFER_LSE],
                               .middle = at[BUFFER_HIDDEN],
                               .feed_in = at[BUFFER_NORMED],
                               .pre = at[BUFFER_WIDE],
                               .inner = at[BUFFER_INNER]};
}

const struct ops gpu_ops = {
    .embed = embed,
    .linear = linear,
    .norm = norm,
    .close = close,
    .rotate = rotate,
    .attend = attend,
    .lap = lap,
};
