/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder's pass on a device: every step over the whole batch. A driver that can record gets few
   sizes of batches (tokens, sequences and the longest one are rounded up; what is added is empty
   sequences and rows that nobody reads), runs each size once as it is, records it the second time,
   and replays it from then on. */
#include "masks/base/memory.h"
#include "model/device/arena.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

struct pass {
    const struct engine *g;
    const struct encoder *c;
    const struct backend *b;
    const struct backend_driver *driver;
    struct engine_room *room;
    struct device_arena *arena;
    struct batch_size size;
    double *seconds; /* null: not measured, and nobody waits between the steps */
    struct error *e;
};

/* The time of a phase is known when the lane has nothing left to do. */
static int lap(const struct pass *p, enum engine_phase phase, double *since)
{
    if (!p->seconds)
        return 0;
    if (p->driver->wait(p->b, &p->arena->lane, p->e) < 0)
        return -1;
    double now = omp_get_wtime();
    p->seconds[phase] += now - *since;
    *since = now;
    return 0;
}

/* ---- steps ---- */

static int run_rows(const struct pass *p, enum rows_entry entry, const struct rows_args *a)
{
    return device_rows(p->b, p->arena, entry, a, p->e);
}

static int product(const struct pass *p, const struct linear *l, const void *x, void *y)
{
    return device_product(p->b, p->arena, l, p->size.tokens, x, y, p->e);
}

/* hidden = norm(x W^T + b + hidden) */
static int product_norm(const struct pass *p, const struct linear *l, const struct norm *n,
                        const void *x, enum engine_phase phase, double *since)
{
    void **at = p->arena->buffer;
    bool fused = false;
    if (p->driver->product(p->b, &p->arena->lane, l, p->size.tokens, x, at[BUFFER_SUM], &fused,
                           p->e) < 0 ||
        lap(p, phase, since) < 0)
        return -1;
    struct rows_args norm = {.rows = p->size.tokens,
                             .eps = n->eps,
                             .gain = n->gain,
                             .shift = n->shift,
                             .bias = l->bias,
                             .x = at[BUFFER_SUM],
                             .residual = at[BUFFER_HIDDEN],
                             .y = at[BUFFER_HIDDEN]};
    return run_rows(p, ROWS_NORM, &norm) < 0 ? -1 : lap(p, PHASE_NORMS, since);
}

static int embed(const struct pass *p)
{
    const struct norm *n = &p->c->embeddings_norm;
    const uint32_t *input = p->arena->buffer[BUFFER_INPUT], tokens = p->size.tokens;
    struct rows_args a = {.rows = tokens,
                          .eps = n->eps,
                          .number = input,
                          .position = input + tokens,
                          .type = input + 2 * (uint64_t)tokens,
                          .words = p->c->device_words,
                          .positions = p->c->positions,
                          .types = p->c->types,
                          .gain = n->gain,
                          .shift = n->shift,
                          .y = p->arena->buffer[BUFFER_HIDDEN]};
    return run_rows(p, ROWS_EMBED, &a);
}

static int project(const struct pass *p, uint32_t layer)
{
    void **at = p->arena->buffer;
    return product(p, &p->c->layer[layer].projection, at[BUFFER_HIDDEN], at[BUFFER_PROJECTION]);
}

/* ---- attention ---- */

/* Numbers of every sequence's tokens, then their places, types, and where sequences begin. */
static const int32_t *offsets_of(const struct pass *p)
{
    const uint32_t *input = p->arena->buffer[BUFFER_INPUT];
    return (const int32_t *)(input + 3 * (uint64_t)p->size.tokens);
}

static struct attention_call make_call(const struct pass *p, uint32_t layer)
{
    void **at = p->arena->buffer;
    uint64_t most = (uint64_t)p->size.sequences * p->size.longest;
    return (struct attention_call){
        .layer = layer,
        .sequences = p->size.sequences,
        .longest = p->size.longest,
        .tokens = p->size.tokens < most ? p->size.tokens : most,
        .offsets = offsets_of(p),
        .projection = at[BUFFER_PROJECTION],
        .context = at[BUFFER_CONTEXT],
        .lse = at[BUFFER_LSE],
        .workspace = at[BUFFER_ATTENTION],
        .workspace_bytes = p->arena->bytes[BUFFER_ATTENTION],
        .stream = p->arena->lane.stream,
    };
}

/* The host's copy of the projection, for whoever wants to see queries and keys. */
static int show(const struct pass *p, uint32_t layer)
{
    const struct attention *a = &p->c->attention;
    const struct engine_watch *w = p->room->watch;
    uint64_t columns = (uint64_t)a->heads * a->padded_dim, element = element_bytes(p->g->dtype);
    uint64_t bytes = p->room->tokens * 3 * columns * element;
    uint8_t *copy = memory_new(bytes, 1);
    int r = p->driver->fetch(p->b, &p->arena->lane, copy, p->arena->buffer[BUFFER_PROJECTION],
                             bytes, p->e);
    if (r == 0)
        w->layer(w->context, layer, copy, copy + columns * element, 3 * columns, a->padded_dim);
    free(copy);
    return r;
}

static int attend(const struct pass *p, uint32_t layer)
{
    struct attention_call call = make_call(p, layer);
    if (p->room->watch && show(p, layer) < 0)
        return -1;
    return attention_run(&p->c->attention, &call, p->e);
}

/* ---- all of it ---- */

static int run_layer(const struct pass *p, uint32_t k, double *since)
{
    const struct layer *l = &p->c->layer[k];
    void **at = p->arena->buffer;
    if (attend(p, k) < 0 || lap(p, PHASE_ATTENTION, since) < 0 ||
        product_norm(p, &l->output, &l->output_norm, at[BUFFER_CONTEXT], PHASE_OUTPUT, since) <
            0 ||
        product(p, l->inner, at[BUFFER_HIDDEN], at[BUFFER_INNER]) < 0 ||
        product_norm(p, l->outer, &l->outer_norm, at[BUFFER_INNER], PHASE_FEED_FORWARD, since) <
            0)
        return -1;
    return k + 1 < p->g->config.layers && project(p, k + 1) < 0
               ? -1
               : lap(p, PHASE_PROJECTION, since);
}

static int run(const struct pass *p)
{
    double since = omp_get_wtime();
    if (embed(p) < 0 || lap(p, PHASE_EMBEDDINGS, &since) < 0 || project(p, 0) < 0 ||
        lap(p, PHASE_PROJECTION, &since) < 0)
        return -1;
    for (uint32_t k = 0; k < p->g->config.layers; k++)
        if (run_layer(p, k, &since) < 0)
            return -1;
    return 0;
}

/* ---- recordings ---- */

static struct recorded *find(const struct pass *p)
{
    struct device_arena *a = p->arena;
    for (uint32_t k = 0; k < a->n_recorded; k++)
        if (!memcmp(&a->recorded[k].size, &p->size, sizeof p->size))
            return &a->recorded[k];
    return NULL;
}

/* A place for this size; the one that was given first makes room where all are taken. */
static void remember(const struct pass *p)
{
    struct device_arena *a = p->arena;
    struct recorded *to = &a->recorded[a->next];
    if (a->next < a->n_recorded && to->recording)
        p->driver->forget(p->b, to->recording);
    *to = (struct recorded){.size = p->size};
    a->n_recorded += a->n_recorded < MOST_RECORDINGS;
    a->next = (a->next + 1) % MOST_RECORDINGS;
}

static int record(const struct pass *p, struct recorded *to)
{
    struct error ignored;
    if (p->driver->record(p->b, &p->arena->lane, p->e) < 0)
        return -1;
    int r = run(p);
    to->recording = p->driver->record_end(p->b, &p->arena->lane, r < 0 ? &ignored : p->e);
    return r < 0 || !to->recording ? -1 : 0;
}

/* Whoever watches or measures needs the steps one by one. */
static int run_or_replay(const struct pass *p)
{
    if (!p->driver->rounds_up || p->room->watch || p->seconds)
        return run(p);
    struct recorded *r = find(p);
    if (!r) {
        remember(p);
        return run(p);
    }
    if (!r->recording && record(p, r) < 0)
        return -1;
    return p->driver->replay(p->b, &p->arena->lane, r->recording, p->e);
}

/* ---- before and after it ---- */

/* Up to the next multiple of an eighth of the power of two below it, and of `least`. */
static uint32_t round_up(uint32_t x, uint32_t least)
{
    uint32_t step = least;
    while (16 * step <= x)
        step *= 2;
    return (x + step - 1) / step * step;
}

static struct batch_size size_of(const struct pass *p, uint32_t tokens, uint32_t n,
                                 uint32_t longest)
{
    if (!p->driver->rounds_up)
        return (struct batch_size){tokens, n, longest};
    uint32_t rounded = round_up(longest, 16);
    return (struct batch_size){round_up(tokens, 16), round_up(n, 1),
                               rounded < p->g->longest ? rounded : p->g->longest};
}

static int grow(const struct pass *p)
{
    const struct model_config *m = &p->g->config;
    uint64_t element = element_bytes(p->g->dtype), columns = attention_columns(m);
    const uint64_t row[] = {
        [BUFFER_HIDDEN] = m->hidden * element,      [BUFFER_PROJECTION] = 3 * columns * element,
        [BUFFER_CONTEXT] = columns * element,       [BUFFER_SUM] = m->hidden * sizeof(float),
        [BUFFER_INNER] = m->intermediate * element, [BUFFER_LSE] = m->heads * sizeof(float),
    };
    uint64_t words = 3 * (uint64_t)p->size.tokens + p->size.sequences + 1;
    if (device_grow(p->b, p->arena, BUFFER_INPUT, words * sizeof(uint32_t), p->e) < 0)
        return -1;
    for (int k = BUFFER_HIDDEN; k <= BUFFER_LSE; k++)
        if (device_grow(p->b, p->arena, (enum device_buffer)k, row[k] * p->size.tokens, p->e) <
            0)
            return -1;
    struct attention_call call = make_call(p, 0);
    return device_grow(p->b, p->arena, BUFFER_ATTENTION,
                       attention_workspace(&p->c->attention, &call), p->e);
}

/* The host's side: what the caller reads, and what is sent. */
static void lay_out(const struct pass *p, const struct sequence *list, uint32_t n,
                    uint32_t tokens)
{
    struct arena *host = p->room->arena;
    const uint32_t all = p->size.tokens;
    uint64_t words = 3 * (uint64_t)all + p->size.sequences + 1;
    void *offsets = p->room->offsets, *staging = p->arena->staging;
    arena_grow(&offsets, &host->offsets_bytes, (n + UINT64_C(1)) * sizeof(int32_t));
    arena_grow(&staging, &p->arena->staging_bytes, words * sizeof(uint32_t));
    p->room->offsets = offsets;
    p->arena->staging = memset(staging, 0, words * sizeof(uint32_t));
    p->arena->tokens = all;
    p->room->sequences = n;
    p->room->tokens = tokens;
    p->room->offsets[0] = 0;
    uint32_t *number = p->arena->staging, *begin = number + 3 * (uint64_t)all;
    for (uint32_t s = 0, row = 0; s < n; s++) {
        for (uint32_t i = 0; i < list[s].count; i++, row++) {
            number[row] = list[s].number[i];
            number[all + (uint64_t)row] = i;
            number[2 * (uint64_t)all + row] = i >= list[s].first_part;
        }
        p->room->offsets[s + 1] = (int32_t)row;
    }
    for (uint32_t s = 0; s <= p->size.sequences; s++)
        begin[s] = (uint32_t)p->room->offsets[s < n ? s : n];
}

static int run_batch(const struct pass *p)
{
    const uint64_t words = 3 * (uint64_t)p->size.tokens + p->size.sequences + 1;
    struct lane *lane = &p->arena->lane;
    struct error ignored;
    if (p->driver->send(p->b, lane, p->arena->buffer[BUFFER_INPUT], p->arena->staging,
                        words * sizeof(uint32_t), p->e) < 0)
        return -1;
    int r = run_or_replay(p);
    /* Staging is free again when nobody reads it. */
    return p->driver->wait(p->b, lane, r < 0 ? &ignored : p->e) < 0 ? -1 : r;
}

int device_encode(const struct engine *g, const struct sequence *list, uint32_t n,
                  uint32_t tokens, uint32_t longest, struct engine_room *room, struct error *e)
{
    const struct backend *b = g->encoder->backend;
    struct pass p = {.g = g,
                     .c = g->encoder,
                     .b = b,
                     .driver = b->driver,
                     .room = room,
                     .arena = device_arena_of(b, room, e),
                     .seconds = room->seconds,
                     .e = e};
    if (!p.arena)
        return -1;
    p.size = size_of(&p, tokens, n, longest);
    if (grow(&p) < 0)
        return -1;
    lay_out(&p, list, n, tokens);
    return run_batch(&p);
}

int device_fetch(const struct engine *g, struct engine_room *room, struct error *e)
{
    const struct backend *b = g->encoder->backend;
    struct device_arena *a = device_arena_of(b, room, e);
    const uint64_t bytes = (uint64_t)room->tokens * g->config.hidden * element_bytes(g->dtype);
    if (!a)
        return -1;
    arena_grow(&room->hidden, &room->arena->hidden_bytes, bytes);
    return b->driver->fetch(b, &a->lane, room->hidden, a->buffer[BUFFER_HIDDEN], bytes, e);
}
