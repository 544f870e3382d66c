/* SPDX-License-Identifier: Apache-2.0 */
/* Inference on the CPU. Rows are divided into panels, and memory and products are made for these. Then the pass runs over
   a tape of one layer. */
#include "model/arch/arch.h"
#include "model/backend/cpu/forward/plain.h"
#include <omp.h>

/* A batch with fewer rows for each thread than SHARED_ROWS (DIVIDED_ROWS with more than four threads) is one panel. Most of
   its time is reading weights: divided products read them once together, panels once each. There are two numbers because
   threads that share slices wait for each other less often than threads that divide products. */
enum { PANEL_ROWS = 512, SHARED_ROWS = 128, DIVIDED_ROWS = 32 };

static void divide(struct cpu_batch *p)
{
    uint32_t threads = p->g->threads;
    bool shared = threads <= p->c->feed.slices;
    p->divided = threads > 1 && cpu_fuses(p->g->config.arch) &&
                 p->tokens < (shared ? SHARED_ROWS : DIVIDED_ROWS) * threads;
    p->sharers = p->divided && shared ? threads : 1;
    p->panels = 1;
    p->panel = product_rows(p->tokens);
    if (p->divided || (threads == 1 && p->tokens <= PANEL_ROWS))
        return;
    uint32_t panels = (p->tokens + PANEL_ROWS - 1) / PANEL_ROWS;
    panels = (panels + threads - 1) / threads * threads;
    p->panel = product_rows((p->tokens + panels - 1) / panels);
    p->panels = (p->tokens + p->panel - 1) / p->panel;
}

static void grow(const struct cpu_batch *p, struct engine_workspace *w)
{
    const struct engine *g = p->g;
    struct backend_workspace *m = p->memory;
    const uint64_t columns = attention_columns(&g->config), element = element_bytes(g->dtype);
    const uint64_t rows = p->tokens + (uint64_t)PRODUCT_ROWS_BEYOND;
    buffer_grow(&w->hidden, &w->hidden_bytes, rows * g->config.hidden * element);
    buffer_grow(&m->projection.data, &m->projection.bytes, rows * 3 * columns * element);
    buffer_grow(&m->context.data, &m->context.bytes, rows * columns * element);
    buffer_grow(&m->lse.data, &m->lse.bytes,
                (uint64_t)p->tokens * g->config.heads * sizeof(float));
    if (!cpu_fuses(g->config.arch)) {
        buffer_grow(&m->normed.data, &m->normed.bytes, rows * g->config.hidden * element);
        buffer_grow(&m->inner.data, &m->inner.bytes, rows * g->config.intermediate * element);
    }
    if (g->config.arch->gated)
        buffer_grow(&m->wide.data, &m->wide.bytes, rows * 2 * g->config.intermediate * element);
    cpu_workspace_grow_panels(g, m, p->panel);
    struct attention_call call = {.sequences = p->sequences,
                                  .longest = p->longest,
                                  .threads = g->threads,
                                  .tokens = p->tokens,
                                  .offsets = p->offsets};
    buffer_grow(&m->attention.data, &m->attention.bytes,
                attention_workspace(&p->c->attention, &call));
}

/* Tape of one layer, which all layers use: each layer replaces the hidden states. */
static struct layer_tape one_layer(const struct engine_workspace *w)
{
    const struct backend_workspace *m = w->memory;
    return (struct layer_tape){.hidden = w->hidden,
                               .projection = m->projection.data,
                               .context = m->context.data,
                               .lse = m->lse.data,
                               .middle = w->hidden,
                               .attention_in = m->normed.data,
                               .feed_in = m->normed.data,
                               .pre = m->wide.data,
                               .inner = m->inner.data};
}

/* Runs layers whose blocks the panels do not implement. */
static int walk(const struct cpu_batch *p, struct error *e)
{
    struct op_batch own = {.batch = p, .since = omp_get_wtime()};
    const struct graph graph = {p->g, &cpu_ops, &own, p->tape};
    return graph_forward(&graph, e);
}

int cpu_encode(const struct encode_request *r, struct error *e)
{
    struct engine_workspace *w = r->workspace;
    struct cpu_batch p = {.g = r->engine,
                          .c = r->engine->encoder,
                          .ops = r->engine->encoder->state->ops,
                          .train_ops = r->engine->encoder->state->train_ops,
                          .list = r->list,
                          .offsets = w->offsets,
                          .sequences = w->sequences,
                          .tokens = w->tokens,
                          .longest = r->longest,
                          .watch = w->watch,
                          .seconds = w->seconds,
                          .memory = cpu_workspace_of(w)};
    divide(&p);
    grow(&p, w);
    const struct layer_tape layer = one_layer(w);
    const struct tape tape = {.layer = &layer,
                              .last = w->hidden,
                              .unnormed = p.c->final_norm.size ? w->hidden : NULL};
    p.tape = &tape;
    if (!cpu_fuses(p.g->config.arch))
        return walk(&p, e);
    return cpu_batch_make_products(&p, e) < 0 ? -1 : cpu_batch_forward(&p, e);
}
