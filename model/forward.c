/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder's pass over a packed batch. Rows are worked off in panels: between two attentions a
   panel goes through output, LayerNorm, feed forward, LayerNorm and the next layer's projection on one
   thread, so that what lies between the products stays in that core's cache. A batch with few rows for
   each thread is one panel, and every product is divided among the threads ("team"). */
#include "masks/base/memory.h"
#include "model/device/pass.h"
#include "model/encoder.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { PANEL_ROWS = 256, TEAM_ROWS = 32, CHUNK_ROWS = 16 };

enum product_id {
    PRODUCT_PROJECTION,
    PRODUCT_OUTPUT,
    PRODUCT_INNER,
    PRODUCT_OUTER,
    PRODUCT_OUTER_ADDS,
    PRODUCT_COUNT
};

struct pass {
    const struct engine *g;
    const struct encoder *c;
    const struct sequence *list;
    struct engine_room *room;
    struct arena *arena;
    uint32_t tokens, longest, panel, panels;
    bool team;
    uint32_t sharers; /* threads of a team that each take slices of the feed forward; 1: none */
    const struct product *whole[PRODUCT_COUNT],
        *last[PRODUCT_COUNT]; /* of a panel, the last one */
};

/* Rows first .. first + rows on one thread, or on all in a team. */
struct part {
    const struct pass *p;
    struct panel_room *room;
    const struct product *const *product;
    uint32_t first, rows;
    double *seconds; /* null: not measured */
};

static void lap(const struct part *part, enum engine_phase phase, double *since)
{
    if (!part->seconds)
        return;
    double now = omp_get_wtime();
    part->seconds[phase] += now - *since;
    *since = now;
}

static void *rows_at(const struct pass *p, void *base, uint64_t row, uint64_t columns)
{
    return (uint8_t *)base + row * columns * element_bytes(p->g->dtype);
}

/* ---- the steps of a part ---- */

static void norm_some(const struct part *part, const struct norm *n, uint32_t at, uint32_t rows,
                      bool residual)
{
    const struct pass *p = part->p;
    float *x = part->room->sum + (uint64_t)at * n->size;
    void *y = rows_at(p, p->room->hidden, (uint64_t)part->first + at, n->size);
    if (p->g->dtype == ELEMENT_BF16)
        p->c->rows->norm_bf16(n, rows, x, residual ? y : NULL, y);
    else
        p->c->rows->norm_f32(n, rows, x, residual ? y : NULL, y);
}

static uint32_t chunk_rows(const struct part *part, uint32_t at)
{
    uint32_t left = part->rows - at;
    return left < CHUNK_ROWS ? left : CHUNK_ROWS;
}

/* hidden = norm(sum + hidden), or norm(sum). */
static void norm(const struct part *part, const struct norm *n, bool residual)
{
    if (!part->p->team) {
        norm_some(part, n, 0, part->rows, residual);
        return;
    }
#pragma omp parallel for
    for (uint32_t at = 0; at < part->rows; at += CHUNK_ROWS)
        norm_some(part, n, at, chunk_rows(part, at), residual);
}

static uint32_t sequence_of(const struct pass *p, uint32_t row)
{
    uint32_t low = 0, high = p->room->sequences;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if ((uint32_t)p->room->offsets[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void embed(const struct part *part)
{
    const struct pass *p = part->p;
    const struct encoder *c = p->c;
    uint32_t s = sequence_of(p, part->first), size = p->g->config.hidden;
    for (uint32_t k = 0; k < part->rows; k++) {
        while ((uint32_t)p->room->offsets[s + 1] <= part->first + k)
            s++;
        uint32_t at = part->first + k - (uint32_t)p->room->offsets[s];
        const struct sequence *from = &p->list[s];
        float *sum = part->room->sum + (uint64_t)k * size;
        tensor_to_f32(c->words, (uint64_t)from->number[at] * size, size, sum);
        c->rows->add3(size, sum, c->positions + (uint64_t)at * size,
                      c->types + (at < from->first_part ? 0 : size), sum);
    }
}

static int project(const struct part *part, uint32_t layer)
{
    const struct pass *p = part->p;
    const struct linear *l = &p->c->layer[layer].projection;
    return linear_run(
        part->product[PRODUCT_PROJECTION], l, rows_at(p, p->room->hidden, part->first, l->in),
        rows_at(p, p->arena->projection, part->first, l->out), &part->room->product);
}

static int begin(const struct part *part)
{
    double since = part->seconds ? omp_get_wtime() : 0;
    embed(part);
    norm(part, &part->p->c->embeddings_norm, false);
    lap(part, PHASE_EMBEDDINGS, &since);
    int r = project(part, 0);
    lap(part, PHASE_PROJECTION, &since);
    return r;
}

/* ---- feed forward ---- */

static void activate_some(const struct part *part, uint32_t at, uint32_t rows, uint32_t width)
{
    uint64_t first = (uint64_t)at * width;
    part->p->c->rows->gelu_bf16((uint64_t)rows * width, part->room->between + first,
                                (uint16_t *)part->room->inner + first);
}

static void activate(const struct part *part, uint32_t width)
{
    if (!part->p->team || part->p->sharers > 1) {
        activate_some(part, 0, part->rows, width);
        return;
    }
#pragma omp parallel for
    for (uint32_t at = 0; at < part->rows; at += CHUNK_ROWS)
        activate_some(part, at, chunk_rows(part, at), width);
}

/* sum = or += what slice k says of x. */
static int feed_slice(const struct part *part, const struct layer *l, uint32_t k, bool adds)
{
    const struct pass *p = part->p;
    struct panel_room *room = part->room;
    const struct linear *inner = &l->inner[k];
    if (linear_run(part->product[PRODUCT_INNER], inner,
                   rows_at(p, p->room->hidden, part->first, inner->in),
                   p->c->own_gelu ? room->between : room->inner, &room->product) < 0)
        return -1;
    if (p->c->own_gelu)
        activate(part, inner->out);
    return linear_run(part->product[adds ? PRODUCT_OUTER_ADDS : PRODUCT_OUTER], &l->outer[k],
                      room->inner, room->sum, &room->product);
}

/* Slices first, first + step, ... */
static int feed_slices(const struct part *part, const struct layer *l, uint32_t first,
                       uint32_t step)
{
    int r = 0;
    for (uint32_t k = first; k < part->p->c->slices && r == 0; k += step)
        r = feed_slice(part, l, k, k > first);
    return r;
}

/* Each thread into a sum of its own; all of them into the first. */
static int feed_shared(const struct part *part, const struct layer *l)
{
    const struct pass *p = part->p;
    struct panel_room *room = p->arena->panel;
    const uint32_t size = l->outer->out;
    int failed = 0;
#pragma omp parallel num_threads(p->sharers) reduction(| : failed)
    {
        uint32_t t = (uint32_t)omp_get_thread_num(), all = (uint32_t)omp_get_num_threads();
        struct part own = *part;
        own.room = &room[t];
        failed |= feed_slices(&own, l, t, all) < 0;
#pragma omp barrier
#pragma omp for
        for (uint32_t at = 0; at < part->rows; at += CHUNK_ROWS)
            for (uint32_t k = 1; k < all; k++)
                p->c->rows->add_f32((uint64_t)chunk_rows(part, at) * size,
                                    room[k].sum + (uint64_t)at * size,
                                    room->sum + (uint64_t)at * size);
    }
    return failed ? -1 : 0;
}

static int feed(const struct part *part, const struct layer *l)
{
    return part->p->sharers > 1 ? feed_shared(part, l) : feed_slices(part, l, 0, 1);
}

/* What follows the attention of a layer, up to the attention of the next. */
static int go_on(const struct part *part, uint32_t layer)
{
    const struct pass *p = part->p;
    const struct layer *l = &p->c->layer[layer];
    struct panel_room *room = part->room;
    double since = part->seconds ? omp_get_wtime() : 0;
    if (linear_run(part->product[PRODUCT_OUTPUT], &l->output,
                   rows_at(p, p->arena->context, part->first, l->output.in), room->sum,
                   &room->product) < 0)
        return -1;
    lap(part, PHASE_OUTPUT, &since);
    norm(part, &l->output_norm, true);
    lap(part, PHASE_NORMS, &since);
    if (feed(part, l) < 0)
        return -1;
    lap(part, PHASE_FEED_FORWARD, &since);
    norm(part, &l->outer_norm, true);
    lap(part, PHASE_NORMS, &since);
    int r = layer + 1 < p->g->config.layers ? project(part, layer + 1) : 0;
    lap(part, PHASE_PROJECTION, &since);
    return r;
}

/* ---- the pass ---- */

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
    return layer == BEFORE_LAYERS ? begin(&part) : go_on(&part, (uint32_t)layer);
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
                 rows_at(p, p->arena->projection, 1, columns), 3 * columns, a->padded_dim);
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
    p->team = threads > 1 && p->tokens < TEAM_ROWS * threads;
    p->sharers = p->team && threads <= p->c->slices ? threads : 1;
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
