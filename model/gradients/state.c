/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gradients/state.h"
#include "masks/base/memory.h"
#include "model/engine/encoder.h"
#include <math.h>
#include <stdlib.h>

static uint64_t padded(uint64_t count)
{
    return (count + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN;
}

static bool trains(const struct engine *g, const struct tensor *t)
{
    return t->parameter.part & g->parts && (t->data || g->outline);
}

struct training_use train_state_use(const struct train_state *s)
{
    struct training_use ret = {0};
    if (s->device.does->use)
        s->device.does->use(s->device.state, &ret);
    return ret;
}

uint64_t train_state_count(const struct engine *g)
{
    uint64_t ret = 0;
    for (uint32_t k = 0; k < g->weights.n_tensors; k++)
        if (trains(g, &g->weights.tensor[k]))
            ret += padded(g->weights.tensor[k].parameter.count);
    return ret;
}

uint64_t train_state_blocks(const struct engine *g, uint64_t size)
{
    uint64_t ret = 0;
    for (uint32_t k = 0; k < g->weights.n_tensors; k++)
        if (trains(g, &g->weights.tensor[k]))
            ret += (g->weights.tensor[k].parameter.count + size - 1) / size;
    return ret;
}

static void add_piece(struct train_state *s, const struct tensor *t)
{
    const uint64_t count = t->parameter.count;
    s->piece[s->pieces++] =
        (struct piece){&t->parameter, s->count, count, t->parameter.decays, 1};
    s->count += padded(count);
}

/* Query, key and value stand one after another, each as weight and bias: first the weights, then the biases. */
static void add_six(struct train_state *s, const struct tensor *t)
{
    static const uint8_t order[] = {0, 2, 4, 1, 3, 5};
    for (size_t k = 0; k < sizeof order; k++)
        add_piece(s, &t[order[k]]);
}

static void add_pieces(struct train_state *s, const struct engine *g)
{
    const struct weights *w = &g->weights;
    s->piece = memory_new(w->n_tensors, sizeof *s->piece);
    for (uint32_t k = 0; k < w->n_tensors; k++) {
        const struct tensor *t = &w->tensor[k];
        if (!trains(g, t))
            continue;
        if (t->parameter.id == PARAMETER_QUERY_WEIGHT) {
            add_six(s, t);
            k += 5;
        } else {
            add_piece(s, t);
        }
    }
}

struct training_device train_device(const struct engine *g)
{
    return (struct training_device){g->encoder->backend->training, g->encoder->state};
}

int train_state_allocate(struct train_state *s, struct error *e)
{
    float **each[] = {&s->value, &s->gradient, &s->first_moment, &s->second_moment};
    s->moments = (struct span){0, s->count};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        *each[k] = s->device.does->array_new(s->device.state, s->count, e);
        if (!*each[k])
            return -1;
    }
    return 0;
}

int train_state_shard(struct train_state *s, struct span moments, struct error *e)
{
    float **each[] = {&s->first_moment, &s->second_moment};
    s->moments = moments;
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        s->device.does->array_destroy(s->device.state, *each[k]);
        *each[k] = s->device.does->array_new(s->device.state, moments.count, e);
        if (!*each[k])
            return -1;
    }
    return 0;
}

int train_state_clear(const struct train_state *s, uint32_t threads, struct error *e)
{
    return s->device.does->array_clear(s->device.state, s->gradient, s->count, threads, e);
}

/* A tensor's values as f32 to where the state has them. */
static int write_values(const struct train_state *s, const struct tensor *t, float *to,
                        struct error *e)
{
    const struct training_device *d = &s->device;
    const uint64_t count = t->parameter.count;
    float *host = d->does->array_host(d->state, s->value), *values = NULL;
    if (t->element == ELEMENT_F32)
        return d->does->array_write(d->state, to, count, t->data, e);
    if (host) {
        tensor_to_f32(t, 0, count, host + (to - s->value));
        return 0;
    }
    values = memory_new(count, sizeof *values);
    tensor_to_f32(t, 0, count, values);
    int r = d->does->array_write(d->state, to, count, values, e);
    free(values);
    return r;
}

/* The engine reads the parameters from here on where training writes them. */
static int take_over(const struct train_state *s, struct engine *g, struct error *e)
{
    for (uint32_t k = 0; k < s->pieces; k++) {
        const struct piece *p = &s->piece[k];
        struct tensor *t = weights_get(&g->weights, p->parameter->id, p->parameter->layer);
        float *to = s->value + p->first;
        if (write_values(s, t, to, e) < 0)
            return -1;
        free(t->own);
        t->own = NULL;
        t->data = to;
        t->element = ELEMENT_F32;
        t->on_device = true;
    }
    return 0;
}

int train_state_new(struct engine *g, struct train_state **ret, struct error *e)
{
    if (!g->trains || g->outline)
        return error_set(e, ERROR_INPUT, "the engine was not loaded for training");
    struct train_state *s = memory_new(1, sizeof *s);
    s->device = train_device(g);
    add_pieces(s, g);
    if (train_state_allocate(s, e) < 0 || take_over(s, g, e) < 0) {
        train_state_destroy(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void train_state_finish(struct train_state *s)
{
    float *each[] = {s->value, s->gradient, s->first_moment, s->second_moment};
    for (size_t k = 0; k < sizeof each / sizeof *each; k++)
        if (each[k])
            s->device.does->array_destroy(s->device.state, each[k]);
}

void train_state_destroy(struct train_state *s)
{
    if (!s)
        return;
    train_state_finish(s);
    free(s->piece);
    free(s);
}

/* ---- rates of layers ---- */

static bool in_layer(const struct parameter *p)
{
    return p->id >= PARAMETER_QUERY_WEIGHT && p->id <= PARAMETER_OUTER_SHIFT;
}

static bool in_embeddings(const struct parameter *p)
{
    return p->id <= PARAMETER_RELATIVE;
}

uint32_t train_state_layers(const struct train_state *s)
{
    uint32_t ret = 0;
    for (uint32_t k = 0; k < s->pieces; k++) {
        const struct parameter *p = s->piece[k].parameter;
        if (in_layer(p) && p->layer >= ret)
            ret = p->layer + 1;
    }
    return ret;
}

uint64_t train_state_final(const struct train_state *s, uint32_t layer)
{
    uint64_t ret = 0;
    for (uint32_t k = 0; k < s->pieces; k++) {
        const struct piece *p = &s->piece[k];
        if (in_embeddings(p->parameter) ||
            (in_layer(p->parameter) && p->parameter->layer < layer))
            ret = p->first + padded(p->count);
    }
    return ret;
}

void train_state_layer_decay(struct train_state *s, double decay)
{
    const uint32_t layers = train_state_layers(s);
    for (uint32_t k = 0; k < s->pieces; k++) {
        const struct parameter *p = s->piece[k].parameter;
        const uint32_t power = in_layer(p)        ? layers - p->layer
                               : in_embeddings(p) ? layers + 1
                                                  : 0;
        s->piece[k].rate_scale = (float)pow(decay, power);
    }
}

const struct piece *train_state_piece(const struct train_state *s, enum parameter_id id,
                                      uint32_t layer)
{
    for (uint32_t k = 0; k < s->pieces; k++)
        if (s->piece[k].parameter->id == id && s->piece[k].parameter->layer == layer)
            return &s->piece[k];
    return NULL;
}
