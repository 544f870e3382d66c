/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a layer, with their weights and where they read and write; the forward pass. See graph.h. */
#include "model/graph/graph.h"
#include "model/arch/arch.h"

const struct layer_tape *graph_layer(const struct tape *t, uint32_t layer)
{
    return &t->layer[(uint64_t)layer * t->step];
}

void *graph_output(const struct tape *t, uint32_t layers, uint32_t layer)
{
    if (layer + 1 < layers)
        return graph_layer(t, layer + 1)->hidden;
    return t->unnormed ? t->unnormed : t->last;
}

static bool norms_first(const struct graph *p, enum block_kind kind)
{
    return arch_norm_of(p->g->config.arch, kind) == NORM_BEFORE;
}

bool graph_attention_begins(const struct graph *p, uint32_t layer)
{
    return norms_first(p, BLOCK_ATTENTION) && p->g->encoder->layer[layer].output_norm.size;
}

uint32_t graph_output_site(const struct arch *a, uint32_t layer)
{
    return arch_block(a, BLOCK_ATTENTION)->keeps ? SITE_NONE : 1 + 2 * layer;
}

uint32_t graph_outer_site(const struct arch *a, uint32_t layer)
{
    return arch_block(a, BLOCK_FEED)->keeps ? SITE_NONE : 2 + 2 * layer;
}

uint32_t graph_head_site(uint32_t layers)
{
    return 1 + 2 * layers; /* graph_outer_site() of the last layer is 2 * layers */
}

uint32_t graph_dense_site(uint32_t layers)
{
    return 2 + 2 * layers;
}

/* ---- norms ---- */

struct op_norm graph_attention_norm(const struct graph *p, uint32_t layer)
{
    const struct layer_tape *t = graph_layer(p->tape, layer);
    return (struct op_norm){.norm = &p->g->encoder->layer[layer].output_norm,
                            .gain = PARAMETER_OUTPUT_GAIN,
                            .shift = PARAMETER_OUTPUT_SHIFT,
                            .layer = layer,
                            .x = t->hidden,
                            .y = t->attention_in,
                            .kept = t->output_norm};
}

struct op_norm graph_feed_norm(const struct graph *p, uint32_t layer)
{
    const struct layer_tape *t = graph_layer(p->tape, layer);
    return (struct op_norm){.norm = &p->g->encoder->layer[layer].outer_norm,
                            .gain = PARAMETER_OUTER_GAIN,
                            .shift = PARAMETER_OUTER_SHIFT,
                            .layer = layer,
                            .x = t->middle,
                            .y = t->feed_in,
                            .kept = t->outer_norm};
}

struct op_norm graph_final_norm(const struct graph *p)
{
    return (struct op_norm){.norm = &p->g->encoder->final_norm,
                            .gain = PARAMETER_FINAL_GAIN,
                            .shift = PARAMETER_FINAL_SHIFT,
                            .x = p->tape->unnormed,
                            .y = p->tape->last,
                            .kept = p->tape->final_norm};
}

/* ---- linears ---- */

struct op_linear graph_projection(const struct graph *p, uint32_t layer)
{
    const bool whole = arch_parameter(p->g->config.arch, PARAMETER_QKV_WEIGHT);
    const struct layer *l = &p->g->encoder->layer[layer];
    const struct layer_tape *t = graph_layer(p->tape, layer);
    return (struct op_linear){
        .l = &l->projection,
        .twin = &l->twin.projection,
        .parameters = whole
                          ? (struct op_parameters){PARAMETER_QKV_WEIGHT, PARAMETER_QKV_BIAS,
                                                   layer, 3, OP_HEADS_OUT, true}
                          : (struct op_parameters){PARAMETER_QUERY_WEIGHT, PARAMETER_QUERY_BIAS,
                                                   layer, 3, OP_HEADS_OUT, false},
        .x = graph_attention_begins(p, layer) ? t->attention_in : t->hidden,
        .y = t->projection};
}

struct op_close graph_attention_close(const struct graph *p, uint32_t layer)
{
    const struct layer *l = &p->g->encoder->layer[layer];
    const struct layer_tape *t = graph_layer(p->tape, layer);
    struct op_close c = {
        .l = &l->output,
        .twin = &l->twin.output,
        .parameters = {PARAMETER_OUTPUT_WEIGHT, PARAMETER_OUTPUT_BIAS, layer, 1, OP_HEADS_IN},
        .site = graph_output_site(p->g->config.arch, layer),
        .phase = PHASE_OUTPUT,
        .x = t->context,
        .residual = t->hidden,
        .y = t->middle};
    if (!norms_first(p, BLOCK_ATTENTION))
        c.norm = graph_attention_norm(p, layer);
    return c;
}

struct op_linear graph_inner(const struct graph *p, uint32_t layer)
{
    const struct model_config *m = &p->g->config;
    const struct layer *l = &p->g->encoder->layer[layer];
    const struct layer_tape *t = graph_layer(p->tape, layer);
    return (struct op_linear){
        .l = l->inner,
        .twin = l->twin.inner,
        .parameters = {PARAMETER_INNER_WEIGHT, PARAMETER_INNER_BIAS, layer, 1, OP_NO_HEADS},
        .x = norms_first(p, BLOCK_FEED) ? t->feed_in : t->middle,
        .pre = t->pre,
        .y = t->inner,
        .glu = m->arch->gated ? linear_after(m->activation) : AFTER_NONE};
}

struct op_close graph_feed_close(const struct graph *p, uint32_t layer)
{
    const struct layer *l = &p->g->encoder->layer[layer];
    const struct layer_tape *t = graph_layer(p->tape, layer);
    struct op_close c = {
        .l = l->outer,
        .twin = l->twin.outer,
        .parameters = {PARAMETER_OUTER_WEIGHT, PARAMETER_OUTER_BIAS, layer, 1, OP_NO_HEADS},
        .site = graph_outer_site(p->g->config.arch, layer),
        .phase = PHASE_FEED_FORWARD,
        .x = t->inner,
        .residual = t->middle,
        .y = graph_output(p->tape, p->g->config.layers, layer)};
    if (!norms_first(p, BLOCK_FEED))
        c.norm = graph_feed_norm(p, layer);
    return c;
}

/* ---- forward ---- */

static int first_norm(const struct graph *p, const struct op_norm *n, struct error *e)
{
    return p->ops->norm(p->batch, n, e) < 0 ? -1 : p->ops->lap(p->batch, PHASE_NORMS, e);
}

int graph_project(const struct graph *p, uint32_t layer, struct error *e)
{
    const struct op_norm n = graph_attention_norm(p, layer);
    const struct op_linear o = graph_projection(p, layer);
    if (graph_attention_begins(p, layer) && first_norm(p, &n, e) < 0)
        return -1;
    if (p->ops->linear(p->batch, &o, e) < 0 ||
        (p->g->config.local && p->ops->rotate(p->batch, layer, o.y, false, e) < 0))
        return -1;
    return p->ops->lap(p->batch, PHASE_PROJECTION, e);
}

static int run_attention(const struct graph *p, uint32_t layer, struct error *e)
{
    const struct op_close c = graph_attention_close(p, layer);
    return p->ops->close(p->batch, &c, e);
}

static int run_feed(const struct graph *p, uint32_t layer, struct error *e)
{
    const struct op_norm n = graph_feed_norm(p, layer);
    const struct op_linear o = graph_inner(p, layer);
    const struct op_close c = graph_feed_close(p, layer);
    if (norms_first(p, BLOCK_FEED) && first_norm(p, &n, e) < 0)
        return -1;
    return p->ops->linear(p->batch, &o, e) < 0 ? -1 : p->ops->close(p->batch, &c, e);
}

int graph_attend(const struct graph *p, uint32_t layer, struct error *e)
{
    return p->ops->attend(p->batch, layer, e) < 0 ? -1
                                                  : p->ops->lap(p->batch, PHASE_ATTENTION, e);
}

int graph_rest(const struct graph *p, uint32_t layer, struct error *e)
{
    return run_attention(p, layer, e) < 0 ? -1 : run_feed(p, layer, e);
}

int graph_forward(const struct graph *p, struct error *e)
{
    const uint32_t layers = p->g->config.layers;
    const struct op_norm last = graph_final_norm(p);
    if (p->ops->embed(p->batch, graph_layer(p->tape, 0)->hidden, e) < 0 ||
        p->ops->lap(p->batch, PHASE_EMBEDDINGS, e) < 0)
        return -1;
    for (uint32_t k = 0; k < layers; k++)
        if (graph_project(p, k, e) < 0 || graph_attend(p, k, e) < 0 || graph_rest(p, k, e) < 0)
            return -1;
    return p->tape->unnormed ? first_norm(p, &last, e) : 0;
}
