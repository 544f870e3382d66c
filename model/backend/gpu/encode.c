/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder's forward pass on a driver. A driver that records gets few sizes of
   batches: tokens, sequences and the longest sequence are rounded up. What is added is empty sequences, and
   rows that nobody reads. */
#include "model/arch/arch.h"
#include "model/backend/gpu/op_batch.h"
#include "model/base/buffer.h"
#include <omp.h>
#include <string.h>

/* ---- the pass ---- */

static int run(void *context, uint32_t index, struct error *e)
{
    struct op_batch own = *(const struct op_batch *)context;
    (void)index;
    const struct layer_tape layer = gpu_layer(&own);
    const struct tape tape = {.layer = &layer,
                              .last = layer.hidden,
                              .unnormed = own.c->final_norm.size ? layer.hidden : NULL};
    const struct graph graph = {own.g, &gpu_ops, &own, &tape};
    own.since = omp_get_wtime();
    return graph_forward(&graph, e);
}

/* Replays the recording of this size of batch, if there was such a batch before and it can be recorded. */
static int run_or_replay(struct op_batch *p, struct error *e)
{
    struct backend_workspace *m = p->memory;
    const struct segment all = {
        gpu_recordings_find(m->state, &m->recordings, &p->size, sizeof p->size), 0, run, p};
    struct error ignored;
    const struct recording *recording =
        all.of->repeats ? gpu_recording_of(m->state, &m->stream, &all, &ignored) : NULL;
    return recording ? p->driver->replay(m->state->gpu, &m->stream, recording, e)
                     : run(p, 0, e);
}

/* The steps run one by one if a caller watches or measures them. */
static int run_steps(struct op_batch *p, struct error *e)
{
    return !p->driver->rounds_up || p->workspace->watch || p->seconds ? run(p, 0, e)
                                                                      : run_or_replay(p, e);
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

static struct batch_size size_of(const struct op_batch *p)
{
    const uint32_t tokens = p->workspace->tokens, n = p->workspace->sequences;
    const uint32_t longest = p->request->longest, rounded = round_up(longest, 16);
    if (!p->driver->rounds_up)
        return (struct batch_size){tokens, n, longest};
    return (struct batch_size){round_up(tokens, 16), round_up(n, 1),
                               rounded < p->g->longest ? rounded : p->g->longest};
}

/* u32 of BUFFER_INPUT */
static uint64_t input_words(const struct op_batch *p)
{
    return 3 * (uint64_t)p->size.tokens + p->size.sequences + 1;
}

static int grow(const struct op_batch *p, struct error *e)
{
    const struct model_config *m = &p->g->config;
    uint64_t element = element_bytes(p->g->dtype), columns = attention_columns(m);
    const uint64_t row[] = {
        [BUFFER_HIDDEN] = m->hidden * element,
        [BUFFER_PROJECTION] = 3 * columns * element,
        [BUFFER_CONTEXT] = columns * element,
        [BUFFER_SUM] = m->hidden * sizeof(float),
        [BUFFER_INNER] = m->intermediate * element,
        [BUFFER_LSE] = m->heads * sizeof(float),
        [BUFFER_NORMED] = p->c->final_norm.size ? m->hidden * element : 0,
        [BUFFER_WIDE] = m->arch->gated ? 2 * m->intermediate * element : 0,
    };
    if (gpu_grow(p->memory, BUFFER_INPUT, input_words(p) * sizeof(uint32_t), e) < 0)
        return -1;
    for (int k = BUFFER_HIDDEN; k <= BUFFER_WIDE; k++)
        if (gpu_grow(p->memory, (enum gpu_buffer)k, row[k] * p->size.tokens, e) < 0)
            return -1;
    struct attention_call call = gpu_attention_call(p, 0);
    return gpu_grow(p->memory, BUFFER_ATTENTION, attention_workspace(&p->c->attention, &call),
                    e);
}

/* The host's side of BUFFER_INPUT. Sequences that were added are empty, at the end. */
static void stage(const struct op_batch *p)
{
    const struct model_config *m = &p->g->config;
    const struct sequence *list = p->request->list;
    const uint32_t all = p->size.tokens, n = p->workspace->sequences;
    const uint64_t bytes = input_words(p) * sizeof(uint32_t);
    void *staging = p->memory->staging;
    buffer_grow(&staging, &p->memory->staging_bytes, bytes);
    p->memory->staging = memset(staging, 0, bytes);
    p->memory->tokens = all;
    uint32_t *token_ids = p->memory->staging, *begin = token_ids + 3 * (uint64_t)all;
    for (uint32_t s = 0, row = 0; s < n; s++)
        for (uint32_t i = 0, counted = 0; i < list[s].count; i++, row++) {
            token_ids[row] = list[s].token_ids[i];
            token_ids[all + (uint64_t)row] = arch_position(m, token_ids[row], &counted);
            token_ids[2 * (uint64_t)all + row] = !m->one_type && i >= list[s].first_part;
        }
    for (uint32_t s = 0; s <= p->size.sequences; s++)
        begin[s] = (uint32_t)p->workspace->offsets[s < n ? s : n];
}

static int run_batch(struct op_batch *p, struct error *e)
{
    struct gpu *gpu = p->c->state->gpu;
    struct backend_workspace *m = p->memory;
    struct error ignored;
    if (p->driver->send(gpu, &m->stream, m->buffer[BUFFER_INPUT], m->staging,
                        input_words(p) * sizeof(uint32_t), e) < 0)
        return -1;
    int r = run_steps(p, e);
    /* The next batch writes to the staging memory: nobody may read it then. */
    return p->driver->wait(gpu, &m->stream, r < 0 ? &ignored : e) < 0 ? -1 : r;
}

int gpu_encode(const struct encode_request *r, struct error *e)
{
    struct op_batch p = {.request = r,
                         .g = r->engine,
                         .c = r->engine->encoder,
                         .driver = r->engine->encoder->state->driver,
                         .workspace = r->workspace,
                         .memory = gpu_workspace_of(r->engine, r->workspace, e),
                         .seconds = r->workspace->seconds};
    if (!p.memory || gpu_wait_for_training(r->engine->encoder->state, e) < 0)
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
