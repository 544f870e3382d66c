/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder's pass over a packed batch: the batch is checked, its rows are divided into panels, rooms
   and products are made for them; then panels and attentions take turns, layer by layer. */
#include "model/cpu/forward.h"
#include "masks/base/memory.h"
#include "model/device/pass.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* With fewer rows a thread than these a batch is one panel: it waits for its weights, and threads read
   them once together, not once each. Two numbers, as threads that share slices wait for each other
   less often than those whose products are divided. */
enum { PANEL_ROWS = 512, SHARED_ROWS = 128, DIVIDED_ROWS = 32 };

void *pass_rows(const struct pass *p, void *base, uint64_t row, uint64_t columns)
{
    return (uint8_t *)base + row * columns * element_bytes(p->g->dtype);
}

enum { BEFORE_LAYERS = -1 };

static int run_panel(const struct pass *p, uint32_t k, int layer)
{
    int thread = omp_get_thread_num();
    struct part part = {p,        &p->arena->panel[thread],
                        p->whole, k * p->panel,
                        p->panel, thread == 0 ? p->room->seconds : NULL};
    if (k + 1 == p->panels) {
        part.rows = p->tokens - part.first;
        part.product = p->last;
    }
    return layer == BEFORE_LAYERS ? panel_begin(&part) : panel_go_on(&part, (uint32_t)layer);
}

static int run_panels(const struct pass *p, int layer)
{
    int failed = 0;
    if (p->team || p->panels == 1)
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
        .sequences = p->room->sequences,
        .longest = p->longest,
        .threads = p->g->threads,
        .tokens = p->tokens,
        .offsets = p->room->offsets,
        .projection = p->arena->projection,
        .context = p->arena->context,
        .lse = p->arena->lse,
        .workspace = p->arena->workspace,
        .workspace_bytes = p->arena->workspace_bytes,
    };
}

static int attend(const struct pass *p, uint32_t layer, struct error *e)
{
    struct attention_call call = make_call(p, layer);
    const struct engine_watch *w = p->room->watch;
    const struct attention *a = &p->c->attention;
    uint64_t columns = (uint64_t)a->heads * a->padded_dim;
    if (w)
        w->layer(w->context, layer, p->arena->projection,
                 pass_rows(p, p->arena->projection, 1, columns), 3 * columns, a->padded_dim);
    double since = omp_get_wtime();
    int r = attention_run(a, &call, e);
    if (p->room->seconds)
        p->room->seconds[PHASE_ATTENTION] += omp_get_wtime() - since;
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

static int check_sequence(const struct engine *g, const struct sequence *s, uint32_t k,
                          struct error *e)
{
    const struct model_config *m = &g->config;
    if (s->count < 1 || s->count > g->longest)
        return error_set(e, ERROR_INPUT, "sequence %u has %u tokens; 1..%u are expected", k,
                         s->count, g->longest);
    if (s->first_part < s->count && m->types < 2)
        return error_set(e, ERROR_INPUT, "sequence %u is a pair; the model has one type", k);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->number[i] >= m->vocabulary)
            return error_set(e, ERROR_INPUT, "sequence %u: token %u of %u", k, s->number[i],
                             m->vocabulary);
    return 0;
}

static int check(struct pass *p, uint32_t n, struct error *e)
{
    uint64_t tokens = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (check_sequence(p->g, &p->list[k], k, e) < 0)
            return -1;
        tokens += p->list[k].count;
        p->longest = p->list[k].count > p->longest ? p->list[k].count : p->longest;
    }
    if (n < 1 || tokens > INT32_MAX / 2)
        return error_set(e, ERROR_INPUT,
                         "a batch of %u sequences; 1 or more with at most %d "
                         "tokens are expected",
                         n, INT32_MAX / 2);
    p->tokens = (uint32_t)tokens;
    return 0;
}

static void divide(struct pass *p)
{
    uint32_t threads = p->g->threads;
    bool shared = threads <= p->c->slices;
    p->team = threads > 1 && p->tokens < (shared ? SHARED_ROWS : DIVIDED_ROWS) * threads;
    p->sharers = p->team && shared ? threads : 1;
    p->panels = 1;
    p->panel = linear_rows(p->tokens);
    if (p->team || (threads == 1 && p->tokens <= PANEL_ROWS))
        return;
    uint32_t panels = (p->tokens + PANEL_ROWS - 1) / PANEL_ROWS;
    panels = (panels + threads - 1) / threads * threads;
    p->panel = linear_rows((p->tokens + panels - 1) / panels);
    p->panels = (p->tokens + p->panel - 1) / p->panel;
}

static int make_products(struct pass *p, uint32_t rows, const struct product **ret,
                         struct error *e)
{
    const struct layer *l = p->c->layer;
    const uint32_t all = p->team ? p->g->threads : 1, feed = p->sharers > 1 ? 1 : all;
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
        ret[k] = linear_product(p->c->matmul, each[k].of, &each[k].use, e);
        if (!ret[k])
            return -1;
        for (uint32_t t = 0; t < p->arena->panels; t++)
            if (product_room_grow(p->c->matmul, ret[k], &p->arena->panel[t].product, e) < 0)
                return -1;
    }
    return 0;
}

struct sizes {
    uint64_t hidden, projection, context, lse, offsets;
};

static struct sizes sizes_of(const struct engine *g, uint64_t tokens, uint64_t sequences)
{
    uint64_t columns = attention_columns(&g->config), element = element_bytes(g->dtype);
    uint64_t rows = tokens + LINEAR_ROWS_BEYOND;
    return (struct sizes){rows * g->config.hidden * element, rows * 3 * columns * element,
                          rows * columns * element, tokens * g->config.heads * sizeof(float),
                          (sequences + 1) * sizeof(int32_t)};
}

static void grow(struct pass *p, uint32_t n)
{
    struct arena *a = p->arena;
    struct sizes s = sizes_of(p->g, p->tokens, n);
    void *offsets = p->room->offsets, *lse = a->lse;
    arena_grow(&p->room->hidden, &a->hidden_bytes, s.hidden);
    arena_grow(&a->projection, &a->projection_bytes, s.projection);
    arena_grow(&a->context, &a->context_bytes, s.context);
    arena_grow(&offsets, &a->offsets_bytes, s.offsets);
    arena_grow(&lse, &a->lse_bytes, s.lse);
    p->room->offsets = offsets;
    a->lse = lse;
    arena_grow_panels(p->g, a, p->panel);
    struct attention_call call = make_call(p, 0);
    call.sequences = n;
    arena_grow(&a->workspace, &a->workspace_bytes,
               attention_workspace(&p->c->attention, &call));
}

static void lay_out(struct pass *p, uint32_t n)
{
    p->room->sequences = n;
    p->room->tokens = p->tokens;
    p->room->offsets[0] = 0;
    for (uint32_t k = 0; k < n; k++)
        p->room->offsets[k + 1] = p->room->offsets[k] + (int32_t)p->list[k].count;
}

static int prepare(struct pass *p, uint32_t n, struct error *e)
{
    divide(p);
    grow(p, n);
    lay_out(p, n);
    if (make_products(p, p->panel, p->whole, e) < 0 ||
        make_products(p, p->tokens - (p->panels - 1) * p->panel, p->last, e) < 0)
        return -1;
    return 0;
}

static int encode(struct pass *p, uint32_t n, struct error *e)
{
    return prepare(p, n, e) < 0 ? -1 : run(p, e);
}

int engine_encode(const struct engine *g, const struct sequence *list, uint32_t n,
                  struct engine_room *room, struct error *e)
{
    struct pass p = {
        .g = g, .c = g->encoder, .list = list, .room = room, .arena = arena_of(room)};
    if (check(&p, n, e) < 0)
        return -1;
    int before = omp_get_max_threads();
    omp_set_num_threads((int)g->threads);
    int r = g->encoder->backend ? device_encode(g, list, n, p.tokens, p.longest, room, e)
                                : encode(&p, n, e);
    omp_set_num_threads(before);
    return r;
}

int engine_fetch(const struct engine *g, struct engine_room *room, struct error *e)
{
    return g->encoder->backend ? device_fetch(g, room, e) : 0;
}

void engine_row(const struct engine *g, const struct engine_room *room, uint32_t row,
                float *ret)
{
    uint64_t size = g->config.hidden;
    const uint8_t *from = room->hidden;
    elements_to_f32(g->dtype, from + row * size * element_bytes(g->dtype), size, ret);
}

uint64_t engine_room_bytes(const struct engine *g, uint32_t tokens, uint32_t sequences)
{
    struct sizes s = sizes_of(g, tokens, sequences);
    struct engine_room none = {.sequences = sequences};
    struct arena arena = {0};
    struct pass p = {.g = g, .c = g->encoder, .room = &none, .arena = &arena, .tokens = tokens};
    p.longest = tokens < g->longest ? tokens : g->longest;
    struct attention_call call = make_call(&p, 0);
    uint64_t inner = element_bytes(g->dtype) + (g->encoder->own_gelu ? sizeof(float) : 0);
    uint64_t panel = (uint64_t)g->config.hidden * sizeof(float) +
                     (uint64_t)g->config.intermediate / g->encoder->slices * inner;
    return s.hidden + s.projection + s.context + s.lse + s.offsets +
           attention_workspace(&g->encoder->attention, &call) +
           g->threads * panel * (PANEL_ROWS + LINEAR_ROWS_BEYOND);
}
