/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a forward pass: panels and attentions take turns, layer by layer. */
#include "model/backend/cpu/forward/cpu_batch.h"
#include "model/gradients/gradients.h"
#include <math.h>
#include <omp.h>
#include <string.h>

void *cpu_batch_row(const struct cpu_batch *p, void *base, uint64_t row, uint64_t columns)
{
    return (uint8_t *)base + row * columns * element_bytes(p->g->dtype);
}

const struct layer_tape *cpu_batch_layer(const struct cpu_batch *p, uint32_t layer)
{
    return graph_layer(p->tape, layer);
}

void *cpu_batch_output(const struct cpu_batch *p, uint32_t layer)
{
    return graph_output(p->tape, p->g->config.layers, layer);
}

void *cpu_batch_slice_row(const struct cpu_batch *p, void *base, uint32_t k, uint64_t row)
{
    return cpu_batch_row(p, base, k * p->tape->rows + row, p->c->layer->inner->shape.out);
}

void cpu_batch_gather(const struct batch_tail *t, uint64_t columns, const void *from, void *to)
{
    const size_t bytes = columns * element_bytes(t->batch.g->dtype);
    for (uint64_t k = 0; k < t->batch.tokens; k++)
        memcpy((uint8_t *)to + k * bytes, (const uint8_t *)from + t->row[k] * bytes, bytes);
}

int cpu_batch_failed(struct error *e)
{
    return error_set(e, ERROR_FALSE, "oneDNN: a matrix product failed");
}

/* ---- products ---- */

/* In training the activation is our own: what stands before it is kept. */
static struct linear inner_of(const struct encoder *c, bool training)
{
    struct linear l = *c->layer->inner;
    if (training) {
        l.shape.y = ELEMENT_F32;
        l.shape.after = AFTER_NONE;
    }
    return l;
}

uint64_t cpu_batch_widened_bytes(const struct encoder *c, uint32_t rows)
{
    const struct layer *l = c->layer;
    const struct linear inner = inner_of(c, true);
    const struct linear *const each[] = {&l->projection, &l->output,          &inner,
                                         l->outer,       &l->twin.projection, &l->twin.output,
                                         l->twin.inner,  l->twin.outer};
    uint64_t most = 0;
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        const uint64_t bytes = product_widened_bytes(c->state->matmul, &each[k]->shape, rows);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static int make_products(struct cpu_batch *p, uint32_t rows, const struct product **ret,
                         struct error *e)
{
    const struct layer *l = p->c->layer;
    const struct linear inner = inner_of(p->c, p->training);
    struct matmul *matmul = p->c->state->matmul;
    const uint32_t all = p->divided ? p->g->threads : 1, feed = p->sharers > 1 ? 1 : all;
    const struct {
        const struct linear *of;
        struct product_use use;
    } each[PRODUCT_COUNT] = {
        [PRODUCT_PROJECTION] = {&l->projection, {rows, all, false}},
        [PRODUCT_OUTPUT] = {&l->output, {rows, all, false}},
        [PRODUCT_INNER] = {&inner, {rows, feed, false}},
        [PRODUCT_OUTER] = {l->outer, {rows, feed, false}},
        [PRODUCT_OUTER_ADDS] = {l->outer, {rows, feed, true}},
        [PRODUCT_PROJECTION_BACK] = {&l->twin.projection, {rows, all, true}},
        [PRODUCT_OUTPUT_BACK] = {&l->twin.output, {rows, all, false}},
        [PRODUCT_INNER_BACK] = {l->twin.inner, {rows, all, true}},
        [PRODUCT_OUTER_BACK] = {l->twin.outer, {rows, all, false}},
    };
    for (int k = 0; k < (p->training ? PRODUCT_COUNT : PRODUCT_INFERENCE); k++) {
        ret[k] = product_find(matmul, each[k].of, &each[k].use, e);
        if (!ret[k])
            return -1;
        for (uint32_t t = 0; t < p->memory->panels; t++)
            if (product_workspace_grow(matmul, ret[k], &p->memory->panel[t].product, e) < 0)
                return -1;
    }
    return 0;
}

int cpu_batch_make_products(struct cpu_batch *p, struct error *e)
{
    return make_products(p, p->panel, p->whole, e) < 0
               ? -1
               : make_products(p, p->tokens - (p->panels - 1) * p->panel, p->last, e);
}

/* ---- panels ---- */

static int run_panel(const struct cpu_batch *p, uint32_t k, panel_step *step, uint32_t layer)
{
    int thread = omp_get_thread_num();
    struct part part = {p,        &p->memory->panel[thread],      p->whole, k, k * p->panel,
                        p->panel, thread == 0 ? p->seconds : NULL};
    if (k + 1 == p->panels) {
        part.rows = p->tokens - part.first;
        part.product = p->last;
    }
    return step(&part, layer);
}

int cpu_batch_run_panels(const struct cpu_batch *p, panel_step *step, uint32_t layer)
{
    int failed = 0;
    if (!p->training && (p->divided || p->panels == 1))
        return run_panel(p, 0, step, layer);
#pragma omp parallel reduction(| : failed)
    {
        /* A product of one thread must not be divided, or its sums depend on how many there are. */
        if (p->training)
            omp_set_num_threads(1);
#pragma omp for schedule(dynamic, 1)
        for (uint32_t k = 0; k < p->panels; k++)
            failed |= run_panel(p, k, step, layer) < 0;
    }
    return failed ? -1 : 0;
}

/* ---- attention ---- */

/* Neighbouring seeds and layers must not give related bits. */
uint64_t gradients_attention_seed(uint64_t seed, uint32_t layer)
{
    uint64_t x = seed + (layer + UINT64_C(1)) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static struct row_dropout dropout_of(uint64_t seed, uint32_t site, double probability)
{
    const uint32_t below = (uint32_t)lrint(probability * 65536);
    return (struct row_dropout){seed, site, below, 65536.0f / (float)(65536 - below)};
}

struct row_dropout training_dropout(const struct training *t, uint32_t site)
{
    const bool output = site % 2; /* graph_output_site() */
    return dropout_of(t->seed, site,
                      site == SITE_NONE ? 0
                      : output          ? t->output_dropout
                                        : t->hidden_dropout);
}

struct row_dropout training_head_dropout(const struct training *t, uint32_t site)
{
    return dropout_of(t->seed, site, t->head_dropout);
}

uint64_t cpu_batch_bias_at(const struct cpu_batch *p, uint32_t layer, bool gradient)
{
    const struct trained_bias *b = p->training->bias;
    return b->per_layer ? layer * cpu_batch_bias_size(p, gradient) : 0;
}

uint64_t cpu_batch_bias_size(const struct cpu_batch *p, bool gradient)
{
    const struct attention *a = &p->c->attention;
    const uint64_t n = a->mask->n;
    return a->heads * (gradient && p->training->bias->diagonals ? 2 * n - 1 : n * n);
}

struct attention_call cpu_batch_attention_call(const struct cpu_batch *p, uint32_t layer)
{
    const struct layer_tape *tape = cpu_batch_layer(p, layer);
    struct attention_call ret = {
        .layer = layer,
        .sequences = p->sequences,
        .longest = p->longest,
        .threads = p->g->threads,
        .tokens = p->tokens,
        .offsets = p->offsets,
        .projection = tape->projection,
        .context = tape->context,
        .lse = tape->lse,
        .workspace = p->memory->attention.data,
        .workspace_bytes = p->memory->attention.bytes,
        .bias = p->c->relative,
    };
    if (p->training) {
        ret.dropout = (float)p->training->attention_dropout;
        ret.seed = gradients_attention_seed(p->training->seed, layer);
        ret.sample = p->training->sample;
        ret.first_rows = p->tail && p->tail->first && layer + 1 == p->g->config.layers;
        if (p->training->bias)
            ret.bias = p->training->bias->value + cpu_batch_bias_at(p, layer, false);
    }
    return ret;
}

int cpu_batch_attend(const struct cpu_batch *p, uint32_t layer, struct error *e)
{
    struct attention_call call = cpu_batch_attention_call(p, layer);
    const struct attention *a = &p->c->attention;
    uint64_t columns = (uint64_t)a->heads * a->padded_dim;
    if (p->watch)
        p->watch->layer(p->watch->context,
                        &(struct engine_layer){layer, call.projection,
                                               cpu_batch_row(p, call.projection, 1, columns),
                                               cpu_batch_row(p, call.projection, 2, columns),
                                               3 * columns, a->padded_dim,
                                               cpu_batch_layer(p, layer)->hidden});
    double since = omp_get_wtime();
    int r = attention_run(a, &call, e);
    if (p->seconds)
        p->seconds[PHASE_ATTENTION] += omp_get_wtime() - since;
    return r;
}

/* ---- forward ---- */

static int begin(const struct part *part, uint32_t layer)
{
    return panel_begin(part, layer) < 0 ? -1 : panel_project(part, 0);
}

static int go_on(const struct part *part, uint32_t layer)
{
    if (panel_layer(part, layer) < 0)
        return -1;
    return layer + 1 < part->p->g->config.layers ? panel_project(part, layer + 1) : 0;
}

/* The last layer after its attention, of the rows that are read. */
static int run_tail(const struct cpu_batch *p, uint32_t layer)
{
    const struct batch_tail *tail = p->tail;
    const struct layer_tape *from = cpu_batch_layer(p, layer),
                            *to = cpu_batch_layer(&tail->batch, layer);
    cpu_batch_gather(tail, p->g->config.hidden, from->hidden, to->hidden);
    cpu_batch_gather(tail, attention_columns(&p->g->config), from->context, to->context);
    return cpu_batch_run_panels(&tail->batch, panel_layer, layer);
}

int cpu_batch_forward(const struct cpu_batch *p, struct error *e)
{
    const uint32_t layers = p->g->config.layers;
    int r = cpu_batch_run_panels(p, begin, 0);
    for (uint32_t k = 0; k < layers && r == 0; k++) {
        if (cpu_batch_attend(p, k, e) < 0)
            return -1;
        r = p->tail && k + 1 == layers ? run_tail(p, k) : cpu_batch_run_panels(p, go_on, k);
    }
    return r ? cpu_batch_failed(e) : 0;
}
