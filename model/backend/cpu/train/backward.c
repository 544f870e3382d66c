/* SPDX-License-Identifier: Apache-2.0 */
/* The layers, last to first. A layer's panels go back to its attention's context; then attention, the gradients of the
   layer's weights, and back to the layer's input. */
#include "model/backend/cpu/train/backward.h"
#include "model/arch/arch.h"
#include "model/gradients/linear_gradients.h"
#include <string.h>

/* ---- shared ---- */

float *backward_gradient(const struct cpu_batch *p, enum parameter_id id, uint32_t layer)
{
    return train_state_gradient(p->training->backward->request->state, id, layer);
}

void backward_add_panels(const struct cpu_batch *p, const float *sums, uint64_t step,
                         uint32_t panels, uint64_t count, float *target)
{
    for (uint32_t k = 0; k < panels && target; k++)
        p->training->ops->add_f32(count, sums + k * step, target);
}

void backward_norm(const struct cpu_batch *p, const struct norm_back *n, uint64_t first,
                   uint32_t rows, float *d)
{
    const struct cpu_train_ops *ops = p->training->ops;
    const void *normalised = cpu_batch_row(p, n->tape->normalised, first, n->norm->size);
    const float *inverse = n->tape->inverse + first;
    if (p->g->dtype == ELEMENT_BF16)
        ops->norm_back_bf16(n->norm, rows, normalised, inverse, d, d, n->gain, n->shift);
    else
        ops->norm_back_f32(n->norm, rows, normalised, inverse, d, d, n->gain, n->shift);
}

void backward_round(const struct cpu_batch *p, uint64_t count, const float *x, void *y)
{
    if (p->g->dtype == ELEMENT_BF16)
        p->ops->round_bf16(count, x, y);
    else
        memcpy(y, x, count * sizeof *x);
}

void backward_columns(const struct cpu_batch *p, uint32_t rows, uint32_t size, const void *x,
                      float *sum)
{
    if (p->g->dtype == ELEMENT_BF16)
        p->training->ops->columns_bf16(rows, size, x, sum);
    else
        p->training->ops->columns_f32(rows, size, x, sum);
}

void backward_drop(const struct part *part, uint32_t site, const float *x, void *y)
{
    const struct cpu_batch *p = part->p;
    const struct training *t = p->training;
    const uint32_t size = p->g->config.hidden;
    const struct row_dropout d = training_dropout(t, site);
    if (!d.keep_below)
        backward_round(p, (uint64_t)part->rows * size, x, y);
    else if (p->g->dtype == ELEMENT_BF16)
        t->ops->drop_bf16(&d, t->place + part->first, part->rows, size, x, y);
    else
        t->ops->drop_f32(&d, t->place + part->first, part->rows, size, x, y);
}

uint64_t panel_sums_size(const struct engine *g)
{
    const struct model_config *m = &g->config;
    const uint64_t inner = (m->arch->gated ? UINT64_C(2) : 1) * m->intermediate;
    return UINT64_C(6) * m->hidden + inner + UINT64_C(3) * attention_columns(m);
}

struct panel_sums panel_sums_of(const struct cpu_batch *p, uint32_t panel)
{
    const uint64_t h = p->g->config.hidden;
    float *at = p->training->backward->sums + panel * panel_sums_size(p->g);
    return (struct panel_sums){
        at,         at + h,     at + 2 * h, at + 3 * h,
        at + 4 * h, at + 5 * h, at + 6 * h, at + 6 * h + p->g->config.intermediate};
}

/* ---- panels ---- */

static void activate_back(const struct part *part, uint64_t count, const void *pre, void *dx)
{
    const struct cpu_batch *p = part->p;
    const enum after after = linear_after(p->g->config.activation);
    if (p->g->dtype == ELEMENT_BF16)
        p->training->ops->activate_back_bf16(after, count, pre, part->workspace->between, dx);
    else
        p->training->ops->activate_back_f32(after, count, pre, part->workspace->between, dx);
}

/* Slice k: from the feed forward's result to its input, which is added to the stream. */
static int slice_back(const struct part *part, uint32_t layer, uint32_t k, float *bias)
{
    const struct cpu_batch *p = part->p;
    const struct backward *b = p->training->backward;
    const struct layer_twins *twin = &p->c->layer[layer].twin;
    const uint32_t hidden = p->g->config.hidden, width = twin->outer[k].shape.out;
    void *d_pre = cpu_batch_slice_row(p, b->d_pre, k, part->first);
    if (product_run(part->product[PRODUCT_OUTER_BACK], &twin->outer[k],
                    cpu_batch_row(p, b->d_outer, part->first, hidden), part->workspace->between,
                    &part->workspace->product) < 0)
        return -1;
    activate_back(part, (uint64_t)part->rows * width,
                  cpu_batch_slice_row(p, cpu_batch_layer(p, layer)->pre, k, part->first),
                  d_pre);
    backward_columns(p, part->rows, width, d_pre, bias + (uint64_t)k * width);
    return product_run(part->product[PRODUCT_INNER_BACK], &twin->inner[k], d_pre,
                       b->stream + (uint64_t)part->first * hidden, &part->workspace->product);
}

/* A LayerNorm and the dropout before it: the stream is then the residual's gradient, *result the product's. */
struct residual_back {
    struct norm_back norm;
    uint32_t site;
    void *result; /* [T, H] */
    float *bias;  /* sums */
};

static void residual_back(const struct part *part, const struct residual_back *r)
{
    const struct cpu_batch *p = part->p;
    const uint32_t hidden = p->g->config.hidden;
    float *stream = p->training->backward->stream + (uint64_t)part->first * hidden;
    void *result = cpu_batch_row(p, r->result, part->first, hidden);
    backward_norm(p, &r->norm, part->first, part->rows, stream);
    backward_drop(part, r->site, stream, result);
    backward_columns(p, part->rows, hidden, result, r->bias);
}

/* From a layer's result to its attention's context. */
static int panel_to_context(const struct part *part, uint32_t layer)
{
    const struct cpu_batch *p = part->p;
    const struct backward *b = p->training->backward;
    const struct layer *l = &p->c->layer[layer];
    const struct layer_tape *t = cpu_batch_layer(p, layer);
    const struct panel_sums s = panel_sums_of(p, part->panel);
    const struct residual_back outer = {
        {&l->outer_norm, &t->outer_norm, s.outer_gain, s.outer_shift},
        graph_outer_site(p->g->config.arch, layer),
        b->d_outer,
        s.outer_bias};
    const struct residual_back output = {
        {&l->output_norm, &t->output_norm, s.output_gain, s.output_shift},
        graph_output_site(p->g->config.arch, layer),
        b->d_output,
        s.output_bias};
    memset(s.outer_gain, 0, (size_t)(s.projection_bias - s.outer_gain) * sizeof(float));
    residual_back(part, &outer);
    for (uint32_t k = 0; k < p->c->feed.slices; k++)
        if (slice_back(part, layer, k, s.inner_bias) < 0)
            return -1;
    residual_back(part, &output);
    return product_run(part->product[PRODUCT_OUTPUT_BACK], &l->twin.output,
                       cpu_batch_row(p, b->d_output, part->first, l->twin.output.shape.in),
                       cpu_batch_row(p, b->d_context, part->first, l->twin.output.shape.out),
                       &part->workspace->product);
}

/* From query, key and value to the layer's input. */
static int panel_to_input(const struct part *part, uint32_t layer)
{
    const struct cpu_batch *p = part->p;
    const struct backward *b = p->training->backward;
    const struct linear *twin = &p->c->layer[layer].twin.projection;
    const struct panel_sums s = panel_sums_of(p, part->panel);
    void *d = cpu_batch_row(p, b->d_projection, part->first, twin->shape.in);
    memset(s.projection_bias, 0, twin->shape.in * sizeof(float));
    backward_columns(p, part->rows, twin->shape.in, d, s.projection_bias);
    return product_run(part->product[PRODUCT_PROJECTION_BACK], twin, d,
                       b->stream + (uint64_t)part->first * twin->shape.out,
                       &part->workspace->product);
}

/* ---- sums ---- */

/* Heads are padded in the sums of query, key and value. */
static void add_projection_bias(const struct cpu_batch *p, uint32_t layer, const float *sums)
{
    static const enum parameter_id ids[] = {PARAMETER_QUERY_BIAS, PARAMETER_KEY_BIAS,
                                            PARAMETER_VALUE_BIAS};
    const struct attention *a = &p->c->attention;
    const uint64_t step = panel_sums_size(p->g);
    for (uint64_t k = 0; k < 3; k++) {
        float *to = backward_gradient(p, ids[k], layer);
        for (uint64_t h = 0; h < a->heads; h++)
            backward_add_panels(p, sums + (k * a->heads + h) * a->padded_dim, step, p->panels,
                                a->head_dim, to + h * a->head_dim);
    }
}

/* Adds the gradients of the biases and norms after attention. */
static void add_rest(const struct cpu_batch *p, uint32_t layer)
{
    const struct model_config *m = &p->g->config;
    const struct panel_sums s = panel_sums_of(p, 0);
    const struct {
        enum parameter_id id;
        const float *sum;
        uint32_t count;
    } each[] = {
        {PARAMETER_OUTER_GAIN, s.outer_gain, m->hidden},
        {PARAMETER_OUTER_SHIFT, s.outer_shift, m->hidden},
        {PARAMETER_OUTER_BIAS, s.outer_bias, m->hidden},
        {PARAMETER_OUTPUT_GAIN, s.output_gain, m->hidden},
        {PARAMETER_OUTPUT_SHIFT, s.output_shift, m->hidden},
        {PARAMETER_OUTPUT_BIAS, s.output_bias, m->hidden},
        {PARAMETER_INNER_BIAS, s.inner_bias, m->intermediate},
    };
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        backward_add_panels(p, each[k].sum, panel_sums_size(p->g), p->panels, each[k].count,
                            backward_gradient(p, each[k].id, layer));
}

/* ---- layers ---- */

const struct cpu_batch *backward_rest(const struct cpu_batch *p, uint32_t layer)
{
    return p->tail && layer + 1 == p->g->config.layers ? &p->tail->batch : p;
}

static void add_bias_gradient(const struct cpu_batch *p, uint32_t layer)
{
    const struct trained_bias *b = p->training->bias;
    const uint64_t size = cpu_batch_bias_size(p, true);
    float *to = b->gradient + cpu_batch_bias_at(p, layer, true);
#pragma omp parallel for simd
    for (uint64_t k = 0; k < size; k++)
        to[k] += b->part[k];
}

int backward_attention(const struct cpu_batch *p, uint32_t layer, struct error *e)
{
    struct attention_call call = cpu_batch_attention_call(p, layer);
    call.grad_context = p->training->backward->d_context;
    call.grad_projection = p->training->backward->d_projection;
    const struct trained_bias *b = p->training->bias;
    const bool wanted = b && b->gradient;
    if (wanted)
        *(b->diagonals ? &call.grad_bias_diagonals : &call.grad_bias) = b->part;
    if (attention_run_back(&p->c->attention, &call, e) < 0)
        return -1;
    if (wanted)
        add_bias_gradient(p, layer);
    return 0;
}

/* Computes the parts of the tape that were not kept. The last layer's are still there. */
static int recompute(const struct cpu_batch *p, uint32_t layer, struct error *e)
{
    const enum recompute level = p->training->backward->request->recompute;
    if (level == RECOMPUTE_NONE || layer + 1 == p->g->config.layers)
        return 0;
    if (cpu_batch_run_panels(p, panel_project, layer) < 0)
        return cpu_batch_failed(e);
    if (cpu_batch_attend(p, layer, e) < 0)
        return -1;
    if (level == RECOMPUTE_LAYER && cpu_batch_run_panels(p, panel_layer, layer) < 0)
        return cpu_batch_failed(e);
    return 0;
}

static int layer_back(const struct cpu_batch *p, uint32_t layer, struct error *e)
{
    const struct cpu_batch *rest = backward_rest(p, layer);
    if (recompute(p, layer, e) < 0)
        return -1;
    if (cpu_batch_run_panels(rest, panel_to_context, layer) < 0)
        return cpu_batch_failed(e);
    if (rest != p)
        tail_spread(p);
    if (backward_attention(p, layer, e) < 0 || backward_weights(p, layer, e) < 0)
        return -1;
    if (cpu_batch_run_panels(p, panel_to_input, layer) < 0)
        return cpu_batch_failed(e);
    add_rest(rest, layer);
    add_projection_bias(p, layer, panel_sums_of(p, 0).projection_bias);
    return 0;
}

int backward_layers(const struct cpu_batch *p, struct error *e)
{
    for (uint32_t k = p->g->config.layers; k-- > 0;)
        if (layer_back(p, k, e) < 0)
            return -1;
    return 0;
}
