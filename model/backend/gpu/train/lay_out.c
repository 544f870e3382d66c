/* SPDX-License-Identifier: Apache-2.0 */
/* Where the arrays of a pass lie. The same function says how large they are. */
#include "model/graph/lay_out.h"
#include "model/arch/arch.h"
#include "model/backend/gpu/train/train.h"

static void *take(const struct op_batch *p, struct arena *a, uint64_t elements)
{
    return arena_take(a, elements * element_bytes(p->g->dtype));
}

static float *take_f32(struct arena *a, uint64_t elements)
{
    return arena_take(a, elements * sizeof(float));
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void lay_out_tape(struct op_batch *p, struct arena *a)
{
    const struct gradients_sizes *s = &p->sizes;
    const bool keeps = s->recompute == RECOMPUTE_NONE;
    struct layer_tape *layer = p->memory->layer;
    graph_lay_out(p->g,
                  &(struct graph_sizes){s->tokens, keeps, s->recompute != RECOMPUTE_LAYER}, a,
                  layer, &p->tape);
    for (uint32_t k = 0; k < p->g->config.layers; k++)
        layer[k].lse = k == 0 || keeps ? take_f32(a, (uint64_t)s->tokens * p->g->config.heads)
                                       : layer[0].lse;
}

static void lay_out_back(struct op_batch *p, struct arena *a)
{
    const struct model_config *m = &p->g->config;
    const uint64_t rows = p->sizes.tokens, columns = attention_columns(m),
                   hidden = rows * m->hidden, inner = rows * m->intermediate;
    p->back = (struct graph_back){
        .stream = take_f32(a, hidden),
        .block = take_f32(a, hidden),
        .d_inner = take_f32(a, inner),
        .d_outer = take(p, a, hidden),
        .d_pre = take(p, a, (m->arch->gated ? 2 : 1) * inner),
        .d_output = take(p, a, hidden),
        .d_context = take(p, a, rows * columns),
        .d_projection = take(p, a, rows * 3 * columns),
        .keeps_attention = p->sizes.recompute == RECOMPUTE_NONE,
        .keeps_layers = p->sizes.recompute != RECOMPUTE_LAYER,
    };
}

static uint64_t chunks(uint64_t rows)
{
    return (rows + TRAIN_CHUNK - 1) / TRAIN_CHUNK;
}

/* Sums of a layer's columns wait together. */
static uint64_t partials(const struct op_batch *p)
{
    const struct model_config *m = &p->g->config;
    const uint64_t norm = UINT64_C(2) * m->hidden,
                   inner = (m->arch->gated ? UINT64_C(2) : 1) * m->intermediate,
                   of_layer = 3 * norm + inner + UINT64_C(3) * attention_columns(m);
    return chunks(p->sizes.tokens) * of_layer;
}

/* Room for these, or for one sum of a head. */
static uint64_t partial_size(const struct op_batch *p, uint32_t words)
{
    const struct model_config *m = &p->g->config;
    const uint64_t norm = UINT64_C(2) * m->hidden,
                   of_words = chunks(words) * larger(m->vocabulary, norm),
                   of_labels = chunks(p->sizes.labels) * norm;
    return larger(p->partials, larger(of_words, of_labels));
}

static void lay_out_words(struct op_batch *p, uint32_t chunk, struct arena *a)
{
    const uint64_t h = chunk * (uint64_t)p->g->config.hidden,
                   v = chunk * (uint64_t)p->g->config.vocabulary;
    struct words_arrays *w = &p->words;
    w->gathered = take(p, a, h);
    w->normed = take(p, a, h);
    w->d_dense = take(p, a, h);
    w->pre = take_f32(a, h);
    w->d = take_f32(a, h);
    w->norm.normalised = take(p, a, h);
    w->norm.inverse = take_f32(a, chunk);
    w->logits = take_f32(a, v);
    w->d_logits = p->g->dtype == ELEMENT_F32 ? w->logits : take(p, a, v);
    w->loss = arena_take(a, p->sizes.words * sizeof *w->loss);
}

static void lay_out_labels(struct op_batch *p, struct arena *a)
{
    const struct gradients_sizes *s = &p->sizes;
    const uint64_t h = p->g->config.hidden,
                   labels = p->g->config.labels > 2 ? p->g->config.labels : 2;
    struct label_arrays *l = &p->labels;
    l->x = take_f32(a, s->labels * h);
    l->dx = take_f32(a, s->labels * h);
    l->logits = take_f32(a, (s->labels + UINT64_C(1)) * labels);
    l->gathered = take(p, a, s->pooled * h);
    l->d_pre = take(p, a, s->pooled * h);
    l->pre = take_f32(a, s->pooled * h);
}

static void lay_out_attention(struct op_batch *p, struct arena *a)
{
    const struct gradients_sizes *s = &p->sizes;
    const struct attention_call call = {
        .sequences = s->sequences, .longest = s->longest, .tokens = s->tokens};
    p->attention_bytes = attention_workspace(&p->c->attention, &call);
    p->attention = arena_take(a, p->attention_bytes);
}

/* What depends on the sizes of targets comes last: recorded launches of the encoder use only what lies before it, and the
   beginning of the partial sums. */
void gpu_train_lay_out(struct op_batch *p, struct arena *a)
{
    const uint32_t chunk = p->sizes.words < WORDS_CHUNK ? p->sizes.words : WORDS_CHUNK;
    lay_out_tape(p, a);
    p->sum = take_f32(a, p->sizes.tokens * (uint64_t)p->g->config.hidden);
    if (!p->request || !p->request->loss_only) {
        lay_out_back(p, a);
        p->partials = partials(p);
    }
    lay_out_attention(p, a);
    if (!p->request || !p->request->loss_only)
        p->partial = take_f32(a, partial_size(p, chunk));
    if (chunk)
        lay_out_words(p, chunk, a);
    if (p->sizes.labels)
        lay_out_labels(p, a);
}
