/* SPDX-License-Identifier: Apache-2.0 */
/* Heads on a driver: rows of the hidden states that the last batch left there go through one product or
   two. */
#include "masks/base/memory.h"
#include "model/backend/gpu/workspace.h"
#include <stdlib.h>

/* Gathers the means of the n sequences that begin at the request's rows, in the engine's dtype: f32 first. */
static int gather_means(struct backend_workspace *m, const struct head_request *r,
                        struct error *e)
{
    const uint64_t size = r->n * (uint64_t)r->engine->config.hidden;
    const struct engine_workspace *w = r->workspace;
    uint32_t s = 0;
    while ((uint32_t)w->offsets[s] != r->rows[0])
        s++;
    if (gpu_grow(m, BUFFER_GATHERED, size * element_bytes(r->engine->dtype), e) < 0 ||
        gpu_grow(m, BUFFER_LOGITS, size * sizeof(float), e) < 0)
        return -1;
    const uint32_t *input = m->buffer[BUFFER_INPUT];
    const struct rows_args mean = {.rows = r->n,
                                   .offsets =
                                       (const int32_t *)(input + 3 * (uint64_t)m->tokens + s),
                                   .x = m->buffer[BUFFER_HIDDEN],
                                   .y = m->buffer[BUFFER_LOGITS]},
                           round = {.rows = r->n,
                                    .x = m->buffer[BUFFER_LOGITS],
                                    .y = m->buffer[BUFFER_GATHERED]};
    return gpu_run_op(m, ENCODER_OP_MEAN, &mean, e) < 0
               ? -1
               : gpu_run_op(m, ENCODER_OP_ADD, &round, e);
}

static int gather(struct backend_workspace *m, const struct head_request *r, struct error *e)
{
    const struct engine *g = r->engine;
    const uint64_t index = r->n * sizeof *r->rows;
    const uint64_t rows = r->n * (uint64_t)g->config.hidden * element_bytes(g->dtype);
    void **at = m->buffer;
    if (gpu_grow(m, BUFFER_INDEX, index, e) < 0 || gpu_grow(m, BUFFER_GATHERED, rows, e) < 0 ||
        m->state->driver->send(m->state->gpu, &m->stream, at[BUFFER_INDEX], r->rows, index, e) <
            0)
        return -1;
    const struct rows_args args = {.rows = r->n,
                                   .number = at[BUFFER_INDEX],
                                   .x = at[BUFFER_HIDDEN],
                                   .y = at[BUFFER_GATHERED]};
    return gpu_run_op(m, ENCODER_OP_GATHER, &args, e);
}

static int product(struct backend_workspace *m, const struct head_request *r,
                   const struct linear *l, const void *x, enum gpu_buffer to, struct error *e)
{
    const uint64_t bytes = (uint64_t)r->n * l->shape.out * element_bytes(l->shape.y);
    return gpu_grow(m, to, bytes, e) < 0 ? -1
                                         : gpu_run_product(m, l, r->n, x, m->buffer[to], e);
}

static int normalise(struct backend_workspace *m, const struct head_request *r, struct error *e)
{
    const struct norm *n = r->head->norm;
    const struct rows_args args = {.rows = r->n,
                                   .eps = n->eps,
                                   .gain = n->gain,
                                   .shift = n->shift,
                                   .x = m->buffer[BUFFER_BETWEEN],
                                   .y = m->buffer[BUFFER_GATHERED]};
    return gpu_run_op(m, ENCODER_OP_NORM, &args, e);
}

/* A product's result as f32. */
static int fetch(struct backend_workspace *m, const struct head_request *r,
                 const struct linear *l, enum gpu_buffer from, struct error *e)
{
    const uint64_t count = (uint64_t)r->n * l->shape.out;
    const uint64_t bytes = count * element_bytes(l->shape.y);
    void *own = memory_new(bytes, 1);
    int result = gpu_buffer_fetch(m, from, bytes, own, e);
    if (result == 0)
        elements_to_f32(l->shape.y, own, count, r->ret);
    free(own);
    return result;
}

int gpu_head(const struct head_request *r, struct error *e)
{
    struct backend_workspace *m = gpu_workspace_of(r->engine, r->workspace, e);
    const struct linear *first = r->head->first, *last = r->head->last;
    enum gpu_buffer at = BUFFER_GATHERED;
    if (!m || (r->head->of_means ? gather_means : gather)(m, r, e) < 0)
        return -1;
    if (first) {
        if (product(m, r, first, m->buffer[at], BUFFER_BETWEEN, e) < 0)
            return -1;
        at = BUFFER_BETWEEN;
    }
    if (r->head->norm) {
        if (normalise(m, r, e) < 0)
            return -1;
        at = BUFFER_GATHERED;
    }
    if (!last)
        return fetch(m, r, first, at, e);
    return product(m, r, last, m->buffer[at], BUFFER_LOGITS, e) < 0
               ? -1
               : fetch(m, r, last, BUFFER_LOGITS, e);
}

int gpu_mean(const struct engine *g, struct engine_workspace *w, float *ret, struct error *e)
{
    const uint64_t bytes = (uint64_t)w->sequences * g->config.hidden * sizeof *ret;
    struct backend_workspace *m = gpu_workspace_of(g, w, e);
    if (!m || gpu_grow(m, BUFFER_LOGITS, bytes, e) < 0)
        return -1;
    const uint32_t *input = m->buffer[BUFFER_INPUT];
    const struct rows_args args = {.rows = w->sequences,
                                   .offsets =
                                       (const int32_t *)(input + 3 * (uint64_t)m->tokens),
                                   .x = m->buffer[BUFFER_HIDDEN],
                                   .y = m->buffer[BUFFER_LOGITS]};
    return gpu_run_op(m, ENCODER_OP_MEAN, &args, e) < 0
               ? -1
               : gpu_buffer_fetch(m, BUFFER_LOGITS, bytes, ret, e);
}
