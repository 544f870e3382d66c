/* SPDX-License-Identifier: Apache-2.0 */
/* Where the arrays for the gradients of a batch lie. The same functions say how large they are and what `gradients_memory` predicts. */
#include "masks/base/memory.h"
#include "model/arch/arch.h"
#include "model/backend/cpu/train/train.h"
#include "model/graph/lay_out.h"
#include <stdlib.h>

enum { LARGEST_PANEL = 512, SMALLEST_PANEL = 64, WANTED_PANELS = 16 };

/* Few sizes, so that there are few products. */
uint32_t training_panel(uint32_t tokens)
{
    uint32_t panel = LARGEST_PANEL;
    while (panel > SMALLEST_PANEL && tokens < panel * WANTED_PANELS)
        panel /= 2;
    return panel;
}

static uint64_t panels_of(uint32_t tokens)
{
    return (tokens + training_panel(tokens) - 1) / training_panel(tokens);
}

/* Products write some rows beyond. */
static uint64_t rows_of(const struct gradients_sizes *s)
{
    return s->tokens + (uint64_t)PRODUCT_ROWS_BEYOND;
}

/* Takes an array of the engine's element type. */
static void *take(const struct engine *g, struct arena *a, uint64_t elements)
{
    return arena_take(a, elements * element_bytes(g->dtype));
}

static float *take_f32(struct arena *a, uint64_t elements)
{
    return arena_take(a, elements * sizeof(float));
}

/* ---- the tape ---- */

void train_lay_out_tape(const struct engine *g, const struct gradients_sizes *s,
                        struct arena *a, struct layer_tape *layer, struct tape *tape)
{
    graph_lay_out(g,
                  &(struct graph_sizes){rows_of(s), s->recompute == RECOMPUTE_NONE,
                                        s->recompute != RECOMPUTE_LAYER},
                  a, layer, tape);
}

void train_lay_out_lse(const struct engine *g, const struct gradients_sizes *s, struct arena *a,
                       struct layer_tape *layer)
{
    for (uint32_t k = 0; k < g->config.layers; k++)
        layer[k].lse = k == 0 || s->recompute == RECOMPUTE_NONE
                           ? take_f32(a, (uint64_t)s->tokens * g->config.heads)
                           : layer[0].lse;
}

/* ---- the backward pass ---- */

void train_lay_out_backward(const struct engine *g, const struct gradients_sizes *s,
                            struct arena *a, struct backward *b)
{
    const struct model_config *m = &g->config;
    const uint64_t rows = rows_of(s), columns = attention_columns(m),
                   panels = panels_of(s->tokens), of_tail = s->read ? panels_of(s->read) : 0;
    b->stream = take_f32(a, rows * m->hidden);
    b->d_outer = take(g, a, rows * m->hidden);
    b->d_pre = take(g, a, (m->arch->gated ? 2 : 1) * rows * m->intermediate);
    b->d_output = take(g, a, rows * m->hidden);
    b->d_context = take(g, a, rows * columns);
    b->d_projection = take(g, a, rows * 3 * columns);
    if (!cpu_fuses(m->arch)) {
        b->block = take_f32(a, rows * m->hidden);
        b->d_inner = take_f32(a, rows * m->intermediate);
    }
    if (m->relative)
        b->relative =
            take_f32(a, 2 * m->heads * (2 * (uint64_t)g->encoder->attention.mask->n - 1));
    b->sums = take_f32(a, (panels > of_tail ? panels : of_tail) * panel_sums_size(g));
    if (s->read && cpu_fuses(m->arch))
        tail_lay_out(g, s->read, a, &b->tail);
    b->embedding_sums = take_f32(a, panels * 2 * m->hidden);
}

static void lay_out_words(const struct engine *g, uint32_t masked, struct arena *a,
                          struct words_arrays *w)
{
    const uint64_t h = g->config.hidden, v = g->config.vocabulary,
                   chunk = masked < HEAD_CHUNK ? masked : HEAD_CHUNK,
                   rows = chunk + PRODUCT_ROWS_BEYOND,
                   panels = (chunk + HEAD_PANEL - 1) / HEAD_PANEL;
    w->gathered = take(g, a, rows * h);
    w->pre = take_f32(a, rows * h);
    w->norm.normalised = take(g, a, rows * h);
    w->norm.inverse = take_f32(a, rows);
    w->normed = take(g, a, rows * h);
    w->d_dense = take(g, a, rows * h);
    w->d_logits = take(g, a, rows * v);
    w->logits = g->dtype == ELEMENT_F32 ? NULL : take_f32(a, g->threads * HEAD_PANEL * v);
    w->gain = take_f32(a, panels * h);
    w->shift = take_f32(a, panels * h);
    w->dense_bias = take_f32(a, panels * h);
    w->bias = take_f32(a, panels * v);
    w->loss = arena_take(a, chunk * sizeof *w->loss);
    w->right = arena_take(a, chunk);
}

static void lay_out_labels(const struct engine *g, const struct gradients_sizes *s,
                           struct arena *a, struct label_arrays *l)
{
    const uint64_t beyond = PRODUCT_ROWS_BEYOND, rows = (s->labels + beyond) * g->config.hidden,
                   pooled = (s->pooled + beyond) * g->config.hidden,
                   labels = g->config.labels > 2 ? g->config.labels : 2;
    l->x = take_f32(a, rows);
    l->dx = take_f32(a, rows);
    l->logits = arena_take(a, s->labels * labels * sizeof *l->logits);
    if (!s->pooled)
        return;
    l->gathered = take(g, a, pooled);
    l->d_pre = take(g, a, pooled);
    l->pre = take_f32(a, pooled);
    if (g->config.arch->pooler == POOLER_SHARED) {
        l->norm.normalised = take(g, a, pooled);
        l->norm.inverse = take_f32(a, s->pooled + beyond);
    }
}

void train_lay_out_heads(const struct engine *g, const struct gradients_sizes *s,
                         struct arena *a, struct backward *b)
{
    if (s->words)
        lay_out_words(g, s->words, a, &b->words);
    if (s->labels)
        lay_out_labels(g, s, a, &b->labels);
}
