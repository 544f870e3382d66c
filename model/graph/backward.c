/* SPDX-License-Identifier: Apache-2.0 */
/* The way back: blocks last to first. The stream is the gradient of a block's result, then that of its input. */
#include "model/arch/arch.h"
#include "model/graph/graph.h"

/* From the gradient of a linear's result to the block's input, which is added to the stream. */
static int enter_back(const struct graph *p, const struct graph_back *b,
                      const struct op_linear *o, const struct op_norm *first, const void *dy,
                      struct error *e)
{
    const struct ops *ops = p->ops;
    const struct op_linear_back l = {dy, o->pre || o->glu != AFTER_NONE ? b->d_pre : NULL,
                                     first ? b->block : b->stream, !first};
    if (!first)
        return ops->linear_back(p->batch, o, &l, e);
    return ops->linear_back(p->batch, o, &l, e) < 0 ||
                   ops->norm_back(p->batch, first, b->block, e) < 0
               ? -1
               : ops->add(p->batch, b->block, b->stream, e);
}

static int feed_back(const struct graph *p, const struct graph_back *b, uint32_t layer,
                     struct error *e)
{
    const bool first = arch_norm_of(p->g->config.arch, BLOCK_FEED) == NORM_BEFORE;
    const struct op_close c = graph_feed_close(p, layer);
    const struct op_linear o = graph_inner(p, layer);
    const struct op_norm n = graph_feed_norm(p, layer);
    if (p->ops->close_back(p->batch, &c, b->stream, b->d_outer, b->d_inner, e) < 0)
        return -1;
    return enter_back(p, b, &o, first ? &n : NULL, b->d_inner, e);
}

static int attention_back(const struct graph *p, const struct graph_back *b, uint32_t layer,
                          struct error *e)
{
    const bool first = graph_attention_begins(p, layer);
    const struct op_close c = graph_attention_close(p, layer);
    const struct op_linear o = graph_projection(p, layer);
    const struct op_norm n = graph_attention_norm(p, layer);
    if (p->ops->close_back(p->batch, &c, b->stream, b->d_output, b->d_context, e) < 0 ||
        p->ops->attend_back(p->batch, layer, e) < 0 ||
        (p->g->config.local && p->ops->rotate(p->batch, layer, b->d_projection, true, e) < 0))
        return -1;
    return enter_back(p, b, &o, first ? &n : NULL, b->d_projection, e);
}

/* Computes again what the tape did not keep. The arrays of the last layer are still there. */
static int recompute(const struct graph *p, const struct graph_back *b, uint32_t layer,
                     struct error *e)
{
    if (b->keeps_attention || layer + 1 == p->g->config.layers)
        return 0;
    if (graph_project(p, layer, e) < 0 || p->ops->attend(p->batch, layer, e) < 0)
        return -1;
    return b->keeps_layers ? 0 : graph_rest(p, layer, e);
}

int graph_norm_back(const struct graph *p, const struct graph_back *b, struct error *e)
{
    const struct op_norm last = graph_final_norm(p);
    return p->tape->unnormed ? p->ops->norm_back(p->batch, &last, b->stream, e) : 0;
}

int graph_layer_back(const struct graph *p, const struct graph_back *b, uint32_t layer,
                     struct error *e)
{
    return recompute(p, b, layer, e) < 0 || feed_back(p, b, layer, e) < 0 ||
                   attention_back(p, b, layer, e) < 0
               ? -1
               : 0;
}

int graph_backward(const struct graph *p, const struct graph_back *b, struct error *e)
{
    if (graph_norm_back(p, b, e) < 0)
        return -1;
    for (uint32_t k = p->g->config.layers; k-- > 0;)
        if (graph_layer_back(p, b, k, e) < 0)
            return -1;
    return p->ops->embed_back(p->batch, b->stream, e);
}
