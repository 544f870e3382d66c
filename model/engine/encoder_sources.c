/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over a model's linears and norms. Query, key and value become one matrix. Heads that the attention kernels
   do not take are padded with zeros: rows of query, key and value, columns of the output. */
#include "model/engine/encoder_sources.h"
#include "masks/base/memory.h"
#include "model/arch/arch.h"
#include "model/backend/training.h"
#include <stdlib.h>
#include <string.h>

/* Shared by the functions below. */
struct walk {
    struct engine *g;
    struct encoder *c;
    struct encoder_sources *list;
};

/* The two parameters of a linear (weight and bias) or of a norm (gain and shift). */
struct pair {
    enum parameter_id first, second;
    uint32_t layer;
};

static const struct tensor *tensor_of(const struct walk *w, enum parameter_id id,
                                      uint32_t layer)
{
    return weights_get(&w->g->weights, id, layer);
}

static void add_kept(const struct walk *w, void *to, const struct tensor *t, enum element type)
{
    struct encoder_sources *s = w->list;
    *MEMORY_PUSH(s->kept, s->kepts, s->kept_capacity) =
        (struct kept_source){.to = to, .tensor = t, .type = type};
}

/* A constant: zeros, or angles. */
static void add_constant(const struct walk *w, void *to, struct kept_source of)
{
    struct encoder_sources *s = w->list;
    of.to = to;
    *MEMORY_PUSH(s->kept, s->kepts, s->kept_capacity) = of;
}

/* A norm that the layer lacks stays zeroed; a shift that it lacks is zeros. */
static void add_norm(const struct walk *w, struct pair of, struct norm *n)
{
    const struct tensor *gain = tensor_of(w, of.first, of.layer),
                        *shift = tensor_of(w, of.second, of.layer);
    if (!gain)
        return;
    n->size = w->g->config.hidden;
    n->eps = (float)w->g->config.layer_norm_eps;
    add_kept(w, &n->gain, gain, ELEMENT_F32);
    if (shift)
        add_kept(w, &n->shift, shift, ELEMENT_F32);
    else
        add_constant(w, &n->shift, (struct kept_source){.kind = KEPT_ZEROS, .n = n->size});
}

/* ---- linear layers ---- */

static void add_linear(const struct walk *w, const struct linear_source *s)
{
    struct encoder_sources *list = w->list;
    struct linear_source *to = MEMORY_PUSH(list->linear, list->linears, list->linear_capacity);
    *to = *s;
    to->matrices = s->matrices ? s->matrices : 1;
    to->shape.x = w->g->dtype;
    if (!w->g->trains)
        to->twin = NULL;
}

/* A whole tensor and its bias. */
static struct linear_source plain(const struct walk *w, struct pair of, struct linear *to)
{
    const struct tensor *t = tensor_of(w, of.first, of.layer);
    const uint32_t out = (uint32_t)t->parameter.shape[0], in = (uint32_t)t->parameter.shape[1];
    return (struct linear_source){
        .linear = to,
        .shape = {.in = in, .out = out, .y = ELEMENT_F32},
        .weight = {t},
        .bias = {tensor_of(w, of.second, of.layer)},
        .no_bias = !tensor_of(w, of.second, of.layer),
        .row = in,
        .rows = out,
        .columns = in,
    };
}

static void pad(const struct walk *w, enum padded_side side, struct linear_source *s)
{
    const struct model_config *m = &w->g->config;
    s->head_dim = m->hidden / m->heads;
    s->padded_dim = attention_padded_dim(s->head_dim);
    s->padded = s->padded_dim == s->head_dim ? PADDED_NONE : side;
}

/* Query, key and value of one tensor are heads below each other, as those of three are once they are put together. */
static void add_whole_projection(const struct walk *w, uint32_t layer, struct layer *l)
{
    struct linear_source s = plain(
        w, (struct pair){PARAMETER_QKV_WEIGHT, PARAMETER_QKV_BIAS, layer}, &l->projection);
    pad(w, PADDED_ROWS, &s);
    s.shape.out = 3 * attention_columns(&w->g->config);
    s.shape.y = w->g->dtype;
    s.twin = &l->twin.projection;
    add_linear(w, &s);
}

static void add_projection(const struct walk *w, uint32_t layer, struct layer *l)
{
    static const struct pair of[] = {{PARAMETER_QUERY_WEIGHT, PARAMETER_QUERY_BIAS, 0},
                                     {PARAMETER_KEY_WEIGHT, PARAMETER_KEY_BIAS, 0},
                                     {PARAMETER_VALUE_WEIGHT, PARAMETER_VALUE_BIAS, 0}};
    struct linear_source s =
        plain(w, (struct pair){of->first, of->second, layer}, &l->projection);
    for (uint32_t k = 0; k < 3; k++) {
        s.weight[k] = tensor_of(w, of[k].first, layer);
        s.bias[k] = tensor_of(w, of[k].second, layer);
    }
    s.matrices = 3;
    pad(w, PADDED_ROWS, &s);
    s.shape.out = 3 * attention_columns(&w->g->config);
    s.shape.y = w->g->dtype;
    s.twin = &l->twin.projection;
    add_linear(w, &s);
}

static void add_output(const struct walk *w, uint32_t layer, struct layer *l)
{
    struct linear_source s = plain(
        w, (struct pair){PARAMETER_OUTPUT_WEIGHT, PARAMETER_OUTPUT_BIAS, layer}, &l->output);
    pad(w, PADDED_COLUMNS, &s);
    s.shape.in = attention_columns(&w->g->config);
    s.twin = &l->twin.output;
    s.twin_y = w->g->dtype;
    add_linear(w, &s);
}

static void add_inner(const struct walk *w, uint32_t layer, struct layer *l)
{
    const struct feed_form *f = &w->c->feed;
    struct linear_source s =
        plain(w, (struct pair){PARAMETER_INNER_WEIGHT, PARAMETER_INNER_BIAS, layer}, NULL);
    s.rows = s.shape.out /= f->slices;
    s.shape.y = f->own_gelu ? ELEMENT_F32 : w->g->dtype;
    s.shape.after = f->own_gelu || w->g->config.arch->gated
                        ? AFTER_NONE
                        : linear_after(w->g->config.activation);
    for (uint32_t k = 0; k < f->slices; k++) {
        s.linear = &l->inner[k];
        s.twin = &l->twin.inner[k];
        s.first_bias = (uint64_t)k * s.rows;
        s.first = s.first_bias * s.row;
        add_linear(w, &s);
    }
}

/* The first slice has the bias. */
static void add_outer(const struct walk *w, uint32_t layer, struct layer *l)
{
    const uint32_t slices = w->c->feed.slices;
    struct linear_source s =
        plain(w, (struct pair){PARAMETER_OUTER_WEIGHT, PARAMETER_OUTER_BIAS, layer}, NULL);
    s.columns = s.shape.in /= slices;
    for (uint32_t k = 0; k < slices; k++) {
        s.linear = &l->outer[k];
        s.twin = &l->twin.outer[k];
        s.first = (uint64_t)k * s.columns;
        s.no_bias |= k > 0;
        add_linear(w, &s);
    }
}

static void add_layer(const struct walk *w, uint32_t layer)
{
    struct layer *l = &w->c->layer[layer];
    if (arch_parameter(w->g->config.arch, PARAMETER_QKV_WEIGHT))
        add_whole_projection(w, layer, l);
    else
        add_projection(w, layer, l);
    add_output(w, layer, l);
    add_inner(w, layer, l);
    add_outer(w, layer, l);
    add_norm(w, (struct pair){PARAMETER_OUTPUT_GAIN, PARAMETER_OUTPUT_SHIFT, layer},
             &l->output_norm);
    add_norm(w, (struct pair){PARAMETER_OUTER_GAIN, PARAMETER_OUTER_SHIFT, layer},
             &l->outer_norm);
}

static void add_final_norm(const struct walk *w)
{
    static const struct pair of = {PARAMETER_FINAL_GAIN, PARAMETER_FINAL_SHIFT, 0};
    if (tensor_of(w, of.first, 0))
        add_norm(w, of, &w->c->final_norm);
}

/* ---- heads ---- */

static void add_words_dense(const struct walk *w)
{
    static const struct pair dense = {PARAMETER_MLM_DENSE_WEIGHT, PARAMETER_MLM_DENSE_BIAS, 0},
                             norm = {PARAMETER_MLM_GAIN, PARAMETER_MLM_SHIFT, 0};
    struct encoder *c = w->c;
    struct linear_source s = plain(w, dense, &c->words_dense);
    s.shape.after = linear_after(w->g->config.head_activation);
    s.twin = &c->words_dense_twin;
    add_linear(w, &s);
    add_norm(w, norm, &c->words_norm);
}

/* The decoder shares the word embeddings unless it has weights of its own. */
static void add_words(const struct walk *w)
{
    const struct model_config *m = &w->g->config;
    const struct tensor *own = tensor_of(w, PARAMETER_MLM_DECODER, 0),
                        *bias = tensor_of(w, PARAMETER_MLM_BIAS, 0);
    struct encoder *c = w->c;
    const struct linear_source s = {
        .linear = &c->words_out,
        .shape = {.in = m->hidden, .out = m->vocabulary, .y = ELEMENT_F32},
        .twin = &c->words_out_twin,
        .weight = {own ? own : c->embeddings.mapped_words},
        .bias = {bias},
        .no_bias = !bias,
        .row = m->hidden,
        .rows = m->vocabulary,
        .columns = m->hidden,
    };
    add_linear(w, &s);
}

static void add_pooler(const struct walk *w)
{
    static const struct pair of = {PARAMETER_POOLER_WEIGHT, PARAMETER_POOLER_BIAS, 0};
    struct linear_source s = plain(w, of, &w->c->pooler);
    s.shape.y = w->g->dtype;
    s.shape.after =
        arch_pooler(&w->g->config) == POOLER_OF_CLASSIFIER ? AFTER_RELU : AFTER_TANH;
    s.twin = &w->c->pooler_twin;
    add_linear(w, &s);
}

static void add_heads(const struct walk *w)
{
    static const struct {
        uint32_t part;
        struct pair of;
        size_t at;
    } small[] = {
        {PART_NSP,
         {PARAMETER_NSP_WEIGHT, PARAMETER_NSP_BIAS, 0},
         offsetof(struct encoder, next)},
        {PART_CLASSIFIER,
         {PARAMETER_CLASSIFIER_WEIGHT, PARAMETER_CLASSIFIER_BIAS, 0},
         offsetof(struct encoder, classifier)},
        {PART_SPAN,
         {PARAMETER_SPAN_WEIGHT, PARAMETER_SPAN_BIAS, 0},
         offsetof(struct encoder, span)},
    };
    const uint32_t parts = w->g->parts;
    const bool shared = arch_pooler(&w->g->config) == POOLER_SHARED;
    if (parts & PART_POOLER && !shared)
        add_pooler(w);
    if (parts & (shared ? PART_POOLER : PART_MLM))
        add_words_dense(w);
    if (parts & PART_MLM)
        add_words(w);
    for (size_t k = 0; k < sizeof small / sizeof *small; k++)
        if (parts & small[k].part) {
            void *to = (uint8_t *)w->c + small[k].at;
            struct linear_source s = plain(w, small[k].of, to);
            add_linear(w, &s);
        }
}

/* ---- all ---- */

static void add_embeddings(const struct walk *w)
{
    static const struct pair norm = {PARAMETER_EMBEDDINGS_GAIN, PARAMETER_EMBEDDINGS_SHIFT, 0};
    struct embeddings *m = &w->c->embeddings;
    m->mapped_words = tensor_of(w, PARAMETER_WORDS, 0);
    if (w->c->backend->keeps_words)
        add_kept(w, &m->words, m->mapped_words, w->g->dtype);
    if (tensor_of(w, PARAMETER_POSITIONS, 0))
        add_kept(w, &m->positions, tensor_of(w, PARAMETER_POSITIONS, 0), ELEMENT_F32);
    if (w->g->config.types)
        add_kept(w, &m->types, tensor_of(w, PARAMETER_TYPES, 0), ELEMENT_F32);
    add_norm(w, norm, &m->norm);
    if (w->g->config.relative) {
        add_kept(w, &w->c->relative, tensor_of(w, PARAMETER_RELATIVE, 0), ELEMENT_F32);
        struct kept_source *last = &w->list->kept[w->list->kepts - 1];
        last->kind = KEPT_RELATIVE;
        last->n = w->c->attention.mask->n;
    }
}

/* Adds the rotations of local layers and of global ones. */
static void add_rotations(const struct walk *w)
{
    const struct model_config *m = &w->g->config;
    const uint32_t dim = m->hidden / m->heads;
    for (int global = 0; global < 2 && m->local; global++)
        add_constant(w, &w->c->rotation[global],
                     (struct kept_source){.kind = KEPT_ROTATION,
                                          .n = (uint64_t)m->positions * dim,
                                          .dim = dim,
                                          .theta = global ? m->global_theta : m->local_theta});
}

void encoder_sources_list(struct engine *g, struct encoder_sources *ret)
{
    const struct walk w = {g, g->encoder, ret};
    *ret = (struct encoder_sources){0};
    add_embeddings(&w);
    add_rotations(&w);
    for (uint32_t k = 0; k < g->config.layers; k++)
        add_layer(&w, k);
    add_final_norm(&w);
    add_heads(&w);
}

void encoder_sources_finish(struct encoder_sources *s)
{
    free(s->linear);
    free(s->kept);
    *s = (struct encoder_sources){0};
}
