/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder's pass on the CPU. Rows are divided into panels, memory and products are made for them; then
   panels and attentions take turns, layer by layer. */
#include "model/backend/cpu/pass.h"
#include <omp.h>
#include <stdlib.h>

/* A batch with fewer rows a thread than these is one panel. Its time goes into reading weights, which divided
   products read once together and panels once each. There are two numbers, as threads that share slices wait
   for each other less often than threads that divide products. */
enum { PANEL_ROWS = 512, SHARED_ROWS = 128, DIVIDED_ROWS = 32 };

void *pass_row(const struct pass *p, void *base, uint64_t row, uint64_t columns)
{
    return (uint8_t *)base + row * columns * element_bytes(p->g->dtype);
}

enum { BEFORE_LAYERS = -1 };

static int run_panel(const struct pass *p, uint32_t k, int layer)
{
    int thread = omp_get_thread_num();
    struct part part = {p,        &p->memory->panel[thread],
                        p->whole, k * p->panel,
                        p->panel, thread == 0 ? p->workspace->seconds : NULL};
    if (k + 1 == p->panels) {
        part.rows = p->tokens - part.first;
        part.product = p->last;
    }
    return layer == BEFORE_LAYERS ? panel_begin(&part) : panel_go_on(&part, (uint32_t)layer);
}

static int run_panels(const struct pass *p, int layer)
{
    int failed = 0;
    if (p->divided || p->panels == 1)
        return run_panel(p, 0, layer);
#pragma omp parallel for schedule(dynamic, 1) reduction(| : failed)
    for (uint32_t k = 0; k < p->panels; k++)
        failed |= run_panel(p, k, layer) < 0;
    return failed ? -1 : 0;
}

static struct attention_call make_call(const struct pass *p, uint32_t layer)
{
    return (struct attention_call){
        .layer = layer,
        .sequences = p->workspace->sequences,
        .longest = p->request->longest,
        .threads = p->g->threads,
        .tokens = p->tokens,
        .offsets = p->workspace->offsets,
        .projection = p->memory->projection.data,
        .context = p->memory->context.data,
        .lse = p->memory->lse.data,
        .workspace = p->memory->attention.data,
        .workspace_bytes = p->memory->attention.bytes,
    };
}

static int attend(const struct pass *p, uint32_t layer, struct error *e)
{
    struct attention_call call = make_call(p, layer);
    const struct engine_watch *w = p->workspace->watch;
    const struct attention *a = &p->c->attention;
    uint64_t columns = (uint64_t)a->heads * a->padded_dim;
    if (w)
        w->layer(w->context, layer, p->memory->projection.data,
                 pass_row(p, p->memory->projection.data, 1, columns), 3 * columns,
                 a->padded_dim);
    double since = omp_get_wtime();
    int r = attention_run(a, &call, e);
    if (p->workspace->seconds)
        p->workspace->seconds[PHASE_ATTENTION] += omp_get_wtime() - since;
    return r;
}

static int run(const struct pass *p, struct error *e)
{
    int r = run_panels(p, BEFORE_LAYERS);
    for (uint32_t k = 0; k < p->g->config.layers && r == 0; k++) {
        if (attend(p, k, e) < 0)
            return -1;
        r = run_panels(p, (int)k);
    }
    return r ? error_set(e, ERROR_FALSE, "oneDNN: a matrix product failed") : 0;
}

/* ---- before it ---- */

static void divide(struct pass *p)
{
    uint32_t threads = p->g->threads;
    bool shared = threads <= p->c->feed.slices;
    p->divided = threads > 1 && p->tokens < (shared ? SHARED_ROWS : DIVIDED_ROWS) * threads;
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

static int make_products(struct pass *p, uint32_t rows, const struct product **ret,
                         struct error *e)
{
    const struct layer *l = p->c->layer;
    struct matmul *matmul = p->c->state->matmul;
    const uint32_t all = p->divided ? p->g->threads : 1, feed = p->sharers > 1 ? 1 : all;
    const struct {
        const struct linear *of;
        struct product_use use;
    } each[PRODUCT_COUNT] = {
        [PRODUCT_PROJECTION] = {&l->projection, {rows, all, false}},
        [PRODUCT_OUTPUT] = {&l->output, {rows, all, false}},
        [PRODUCT_INNER] = {l->inner, {rows, feed, false}},
        [PRODUCT_OUTER] = {l->outer, {rows, feed, false}},
        [PRODUCT_OUTER_ADDS] = {l->outer, {rows, feed, true}},
    };
    for (int k = 0; k < PRODUCT_COUNT; k++) {
        ret[k] = product_find(matmul, each[k].of, &each[k].use, e);
        if (!ret[k])
            return -1;
        for (uint32_t t = 0; t < p->memory->panels; t++)
            if (product_workspace_grow(matmul, ret[k], &p->memory->panel[t].product, e) < 0)
                return -1;
    }
    return 0;
}

static void grow(struct pass *p)
{
    const struct engine *g = p->g;
    struct backend_workspace *m = p->memory;
    const uint64_t columns = attention_columns(&g->config), element = element_bytes(g->dtype);
    const uint64_t rows = p->tokens + (uint64_t)PRODUCT_ROWS_BEYOND;
    buffer_grow(&p->workspace->hidden, &p->workspace->hidden_bytes,
                rows * g->config.hidden * element);
    buffer_grow(&m->projection.data, &m->projection.bytes, rows * 3 * columns * element);
    buffer_grow(&m->context.data, &m->context.bytes, rows * columns * element);
    buffer_grow(&m->lse.data, &m->lse.bytes,
                (uint64_t)p->tokens * g->config.heads * sizeof(float));
    cpu_workspace_grow_panels(g, m, p->panel);
    struct attention_call call = make_call(p, 0);
    buffer_grow(&m->attention.data, &m->attention.bytes,
                attention_workspace(&p->c->attention, &call));
}

static int prepare(struct pass *p, struct error *e)
{
    divide(p);
    grow(p);
    return make_products(p, p->panel, p->whole, e) < 0
               ? -1
               : make_products(p, p->tokens - (p->panels - 1) * p->panel, p->last, e);
}

int cpu_encode(const struct encode_request *r, struct error *e)
{
    struct pass p = {.request = r,
                     .g = r->engine,
                     .c = r->engine->encoder,
                     .ops = r->engine->encoder->state->ops,
                     .workspace = r->workspace,
                     .memory = cpu_workspace_of(r->workspace),
                     .tokens = r->workspace->tokens};
    return prepare(&p, e) < 0 ? -1 : run(&p, e);
}
