/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder's forward pass on a driver: every step over the whole batch. A driver that records gets few sizes of
   batches: tokens, sequences and the longest sequence are rounded up. What is added is empty sequences, and
   rows that nobody reads. */
#include "masks/base/memory.h"
#include "model/backend/gpu/workspace.h"
#include "model/base/buffer.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

struct gpu_batch {
    const struct encode_request *request;
    const struct engine *g;
    const struct encoder *c;
    const struct gpu_driver *driver;
    struct engine_workspace *workspace;
    struct backend_workspace *memory;
    struct batch_size size;
    double *seconds; /* null: not measured, and nobody waits between the steps */
};

/* The time of a phase is known when the stream has nothing left to do. */
static int lap(const struct gpu_batch *p, enum engine_phase phase, double *since,
               struct error *e)
{
    if (!p->seconds)
        return 0;
    if (p->driver->wait(p->c->state->gpu, &p->memory->stream, e) < 0)
        return -1;
    double now = omp_get_wtime();
    p->seconds[phase] += now - *since;
    *since = now;
    return 0;
}

/* ---- steps ---- */

static int product(const struct gpu_batch *p, const struct linear *l, enum gpu_buffer x,
                   enum gpu_buffer y, struct error *e)
{
    void **at = p->memory->buffer;
    return gpu_run_product(p->memory, l, p->size.tokens, at[x], at[y], e);
}

/* sum = x W^T */
static int plain_product(const struct gpu_batch *p, const struct linear *l, enum gpu_buffer x,
                         struct error *e)
{
    void **at = p->memory->buffer;
    const struct gpu_product plain = {l, p->size.tokens, at[x], at[BUFFER_SUM], .fuse = false};
    bool fused;
    return p->driver->product(p->c->state->gpu, &p->memory->stream, &plain, &fused, e);
}

/* hidden = norm(sum + bias + hidden) */
static int add_norm(const struct gpu_batch *p, const struct norm *n, const float *bias,
                    struct error *e)
{
    void **at = p->memory->buffer;
    const struct rows_args args = {.rows = p->size.tokens,
                                   .eps = n->eps,
                                   .gain = n->gain,
                                   .shift = n->shift,
                                   .bias = bias,
                                   .x = at[BUFFER_SUM],
                                   .residual = at[BUFFER_HIDDEN],
                                   .y = at[BUFFER_HIDDEN]};
    return gpu_run_op(p->memory, ENCODER_OP_NORM, &args, e);
}

static int embed(const struct gpu_batch *p, struct error *e)
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
                                   .y = p->memory->buffer[BUFFER_HIDDEN]};
    return gpu_run_op(p->memory, ENCODER_OP_EMBED, &args, e);
}

static int project(const struct gpu_batch *p, uint32_t layer, struct error *e)
{
    return product(p, &p->c->layer[layer].projection, BUFFER_HIDDEN, BUFFER_PROJECTION, e);
}

/* ---- attention ---- */

static struct attention_call make_call(const struct gpu_batch *p, uint32_t layer)
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
    };
}

/* A watch sees copies on the host. */
static int show(const struct gpu_batch *p, uint32_t layer, struct error *e)
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

static int attend(const struct gpu_batch *p, uint32_t layer, struct error *e)
{
    struct attention_call call = make_call(p, layer);
    if (p->workspace->watch && show(p, layer, e) < 0)
        return -1;
    return attention_run(&p->c->attention, &call, e);
}

/* ---- all of it ---- */

static int run_layer(const struct gpu_batch *p, uint32_t k, double *since, struct error *e)
{
    const struct layer *l = &p->c->layer[k];
    if (attend(p, k, e) < 0 || lap(p, PHASE_ATTENTION, since, e) < 0 ||
        plain_product(p, &l->output, BUFFER_CONTEXT, e) < 0 ||
        lap(p, PHASE_OUTPUT, since, e) < 0 ||
        add_norm(p, &l->output_norm, l->output.bias, e) < 0 ||
        lap(p, PHASE_NORMS, since, e) < 0 ||
        product(p, l->inner, BUFFER_HIDDEN, BUFFER_INNER, e) < 0 ||
        plain_product(p, l->outer, BUFFER_INNER, e) < 0 ||
        lap(p, PHASE_FEED_FORWARD, since, e) < 0 ||
        add_norm(p, &l->outer_norm, l->outer->bias, e) < 0 || lap(p, PHASE_NORMS, since, e) < 0)
        return -1;
    return k + 1 < p->g->config.layers && project(p, k + 1, e) < 0
               ? -1
               : lap(p, PHASE_PROJECTION, since, e);
}

static int run(const void *context, struct error *e)
{
    const struct gpu_batch *p = context;
    double since = omp_get_wtime();
    if (embed(p, e) < 0 || lap(p, PHASE_EMBEDDINGS, &since, e) < 0 || project(p, 0, e) < 0 ||
        lap(p, PHASE_PROJECTION, &since, e) < 0)
        return -1;
    for (uint32_t k = 0; k < p->g->config.layers; k++)
        if (run_layer(p, k, &since, e) < 0)
            return -1;
    return 0;
}

/* Who watches or measures needs the steps one by one. */
static int run_or_replay(const struct gpu_batch *p, struct error *e)
{
    const struct gpu_replayable all = {run, p, p->size};
    return !p->driver->rounds_up || p->workspace->watch || p->seconds
               ? run(p, e)
               : gpu_run_or_replay(p->memory, &all, e);
}

/* ---- before and after it ---- */

/* Up to the next multiple of `least` and of an eighth of the power of two below x. */
static uint32_t round_up(uint32_t x, uint32_t least)
{
    uint32_t step = least;
    while (16 * step <= x)
        step *= 2;
    return (x + step - 1) / step * step;
}

static struct batch_size size_of(const struct gpu_batch *p)
{
    const uint32_t tokens = p->workspace->tokens, n = p->workspace->sequences;
    const uint32_t longest = p->request->longest, rounded = round_up(longest, 16);
    if (!p->driver->rounds_up)
        return (struct batch_size){tokens, n, longest};
    return (struct batch_size){round_up(tokens, 16), round_up(n, 1),
                               rounded < p->g->longest ? rounded : p->g->longest};
}

/* u32 of BUFFER_INPUT */
static uint64_t input_words(const struct gpu_batch *p)
{
    return 3 * (uint64_t)p->size.tokens + p->size.sequences + 1;
}

static int grow(const struct gpu_batch *p, struct error *e)
{
    const struct model_config *m = &p->g->config;
    uint64_t element = element_bytes(p->g->dtype), columns = attention_columns(m);
    const uint64_t row[] = {
        [BUFFER_HIDDEN] = m->hidden * element,      [BUFFER_PROJECTION] = 3 * columns * element,
        [BUFFER_CONTEXT] = columns * element,       [BUFFER_SUM] = m->hidden * sizeof(float),
        [BUFFER_INNER] = m->intermediate * element, [BUFFER_LSE] = m->heads * sizeof(float),
    };
    if (gpu_grow(p->memory, BUFFER_INPUT, input_words(p) * sizeof(uint32_t), e) < 0)
        return -1;
    for (int k = BUFFER_HIDDEN; k <= BUFFER_LSE; k++)
        if (gpu_grow(p->memory, (enum gpu_buffer)k, row[k] * p->size.tokens, e) < 0)
            return -1;
    struct attention_call call = make_call(p, 0);
    return gpu_grow(p->memory, BUFFER_ATTENTION, attention_workspace(&p->c->attention, &call),
                    e);
}

/* The host's side of BUFFER_INPUT. Sequences that were added are empty, at the end. */
static void stage(const struct gpu_batch *p)
{
    const struct sequence *list = p->request->list;
    const uint32_t all = p->size.tokens, n = p->workspace->sequences;
    const uint64_t bytes = input_words(p) * sizeof(uint32_t);
    void *staging = p->memory->staging;
    buffer_grow(&staging, &p->memory->staging_bytes, bytes);
    p->memory->staging = memset(staging, 0, bytes);
    p->memory->tokens = all;
    uint32_t *token_ids = p->memory->staging, *begin = token_ids + 3 * (uint64_t)all;
    for (uint32_t s = 0, row = 0; s < n; s++)
        for (uint32_t i = 0; i < list[s].count; i++, row++) {
            token_ids[row] = list[s].token_ids[i];
            token_ids[all + (uint64_t)row] = i;
            token_ids[2 * (uint64_t)all + row] = i >= list[s].first_part;
        }
    for (uint32_t s = 0; s <= p->size.sequences; s++)
        begin[s] = (uint32_t)p->workspace->offsets[s < n ? s : n];
}

static int run_batch(const struct gpu_batch *p, struct error *e)
{
    struct gpu *gpu = p->c->state->gpu;
    struct backend_workspace *m = p->memory;
    struct error ignored;
    if (p->driver->send(gpu, &m->stream, m->buffer[BUFFER_INPUT], m->staging,
                        input_words(p) * sizeof(uint32_t), e) < 0)
        return -1;
    int r = run_or_replay(p, e);
    /* The next batch writes to the staging memory: nobody may read it then. */
    return p->driver->wait(gpu, &m->stream, r < 0 ? &ignored : e) < 0 ? -1 : r;
}

int gpu_encode(const struct encode_request *r, struct error *e)
{
    struct gpu_batch p = {.request = r,
                          .g = r->engine,
                          .c = r->engine->encoder,
                          .driver = r->engine->encoder->state->driver,
                          .workspace = r->workspace,
                          .memory = gpu_workspace_of(r->engine, r->workspace, e),
                          .seconds = r->workspace->seconds};
    if (!p.memory)
        return -1;
    p.size = size_of(&p);
    if (grow(&p, e) < 0)
        return -1;
    stage(&p);
    return run_batch(&p, e);
}

int gpu_fetch(const struct engine *g, struct engine_workspace *w, struct error *e)
{
    struct backend_workspace *m = gpu_workspace_of(g, w, e);
    const uint64_t bytes = (uint64_t)w->tokens * g->config.hidden * element_bytes(g->dtype);
    if (!m)
        return -1;
    buffer_grow(&w->hidden, &w->hidden_bytes, bytes);
    return gpu_buffer_fetch(m, BUFFER_HIDDEN, bytes, w->hidden, e);
}
