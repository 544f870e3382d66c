/* SPDX-License-Identifier: Apache-2.0 */
/* From the tensors of the model to the weights that the backend holds: packed when an engine is loaded, and again in
   place when training has changed them. */
#include "masks/base/memory.h"
#include "model/backend/training.h"
#include "model/engine/encoder_kept.h"
#include "model/engine/encoder_sources.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* Shared by the functions below. */
struct build {
    struct encoder *c;
    struct error *e;
    float *weight, *bias; /* scratch, as large as the largest matrix and bias */
};

static struct linear_shape twin_shape(const struct linear_source *s)
{
    return (struct linear_shape){s->shape.out, s->shape.in, s->shape.x, s->twin_y, AFTER_NONE};
}

/* ---- sizes alone ---- */

static int outline_linear(const struct build *b, const struct linear_source *s)
{
    const struct linear_shape twin = twin_shape(s);
    const struct backend *to = b->c->backend;
    if (to->pack(b->c->state, &s->shape, NULL, NULL, s->linear, b->e) < 0)
        return -1;
    return s->twin ? to->pack(b->c->state, &twin, NULL, NULL, s->twin, b->e) : 0;
}

static int outline_all(const struct build *b, const struct encoder_sources *list)
{
    struct backend_state *state = b->c->state;
    for (uint32_t k = 0; k < list->kepts; k++)
        b->c->backend->keep(state, list->kept[k].type, NULL, kept_count(&list->kept[k]), b->e);
    for (uint32_t k = 0; k < list->linears; k++)
        if (outline_linear(b, &list->linear[k]) < 0)
            return -1;
    return 0;
}

/* ---- values ---- */

static int keep(const struct build *b, const struct kept_source *s)
{
    const uint64_t count = kept_count(s);
    float *own = s->kind != KEPT_COPY ? memory_new(count, sizeof *own) : NULL;
    if (s->tensor)
        tensor_to_f32(s->tensor, 0, s->tensor->parameter.count, b->weight);
    if (own)
        kept_expand(s, b->weight, own);
    void *kept = b->c->backend->keep(b->c->state, s->type, own ? own : b->weight, count, b->e);
    memcpy(s->to, &kept, sizeof kept);
    free(own);
    return kept ? 0 : -1;
}

/* Its values follow from the same scratch. */
static int pack_twin(const struct build *b, const struct linear_source *s)
{
    const struct linear_shape shape = twin_shape(s);
    const struct weight_view transposed = {b->weight, 1, s->shape.in, true};
    const struct encoder *c = b->c;
    if (c->backend->pack(c->state, &shape, NULL, NULL, s->twin, b->e) < 0)
        return -1;
    return c->backend->training->repack(c->state, s->twin, &transposed, NULL, b->e);
}

static int pack(const struct build *b, const struct linear_source *s)
{
    if (linear_source_read(s, NULL, b->weight, b->bias, b->e) < 0 ||
        b->c->backend->pack(b->c->state, &s->shape, b->weight, b->bias, s->linear, b->e) < 0)
        return -1;
    return s->twin ? pack_twin(b, s) : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Elements of the largest matrix, and of the longest bias. */
static uint64_t largest(const struct encoder_sources *list, uint64_t *ret_bias)
{
    uint64_t weight = 1;
    *ret_bias = 1;
    for (uint32_t k = 0; k < list->kepts; k++)
        if (list->kept[k].tensor)
            weight = larger(weight, list->kept[k].tensor->parameter.count);
    for (uint32_t k = 0; k < list->linears; k++) {
        const struct linear_shape *l = &list->linear[k].shape;
        weight = larger(weight, (uint64_t)l->in * l->out);
        *ret_bias = larger(*ret_bias, larger(l->in, l->out));
    }
    return weight;
}

static int pack_all(struct build *b, const struct encoder_sources *list)
{
    uint64_t bias, weight = largest(list, &bias);
    int r = 0;
    b->weight = memory_new(weight, sizeof(float));
    b->bias = memory_new(bias, sizeof(float));
    for (uint32_t k = 0; k < list->kepts && r == 0; k++)
        r = keep(b, &list->kept[k]);
    for (uint32_t k = 0; k < list->linears && r == 0; k++)
        r = pack(b, &list->linear[k]);
    free(b->weight);
    free(b->bias);
    return r;
}

/* Memory of the feed forward's slices, of each layer and of its twin. */
static void allocate_slices(struct encoder *c, uint32_t layers)
{
    const uint32_t n = c->feed.slices;
    struct linear *next = memory_new((size_t)layers * 4 * n, sizeof *next);
    c->slices = next;
    for (uint32_t k = 0; k < layers; k++, next += 4 * (size_t)n) {
        struct layer *l = &c->layer[k];
        l->inner = next;
        l->outer = next + n;
        l->twin.inner = next + 2 * (size_t)n;
        l->twin.outer = next + 3 * (size_t)n;
    }
}

int encoder_pack(struct engine *g, struct error *e)
{
    struct encoder *c = g->encoder;
    struct encoder_sources list;
    struct build b = {.c = c, .e = e};
    c->feed = c->backend->feed_form(&g->config, g->dtype);
    c->layer = memory_new(g->config.layers, sizeof *c->layer);
    allocate_slices(c, g->config.layers);
    encoder_sources_list(g, &list);
    int r = g->outline ? outline_all(&b, &list) : pack_all(&b, &list);
    encoder_sources_finish(&list);
    return r;
}

/* ---- again ---- */

/* One thread's work: a linear or its twin. */
struct again {
    const struct encoder *c;
    const struct linear_source *source;
    bool twin;
    struct error *e;
};

static int repack_view(const struct again *a, const struct weight_view *weight,
                       const float *bias)
{
    const struct weight_view transposed = {weight->value, weight->column, weight->row,
                                           weight->on_host};
    const struct training_backend *to = a->c->backend->training;
    return a->twin ? to->repack(a->c->state, a->source->twin, &transposed, NULL, a->e)
                   : to->repack(a->c->state, a->source->linear, weight, bias, a->e);
}

/* By way of the host. */
static int repack_read(const struct again *a)
{
    const struct linear_source *s = a->source;
    const struct training_device d = {a->c->backend->training, a->c->state};
    float *weight = memory_new((size_t)s->shape.in * s->shape.out, sizeof *weight),
          *bias = memory_new(s->shape.out, sizeof *bias);
    const struct weight_view view = {weight, s->shape.in, 1, true};
    int r = linear_source_read(s, &d, weight, bias, a->e);
    if (r == 0)
        r = repack_view(a, &view, bias);
    free(weight);
    free(bias);
    return r;
}

/* Straight from the device's arrays where they hold it just so. */
static int repack(const struct again *a)
{
    struct weight_view view;
    const float *bias;
    return linear_source_view(a->source, &view, &bias) ? repack_view(a, &view, bias)
                                                       : repack_read(a);
}

/* By way of the host, and of an array of the device. */
static int refill_expanded(const struct encoder *c, const struct kept_source *s, void *kept,
                           struct error *e)
{
    const struct training_backend *to = c->backend->training;
    const uint64_t count = kept_count(s), from = s->tensor->parameter.count;
    float *value = memory_new(from, sizeof *value), *host = memory_new(count, sizeof *host),
          *array = to->array_new(c->state, count, e);
    int r = array ? to->array_read(c->state, s->tensor->data, from, value, e) : -1;
    if (r == 0) {
        kept_expand(s, value, host);
        r = to->array_write(c->state, array, count, host, e);
    }
    if (r == 0)
        r = to->refill(c->state, kept, s->type, array, count, e);
    if (r == 0 && to->repack_end)
        r = to->repack_end(c->state, false, e);
    to->array_destroy(c->state, array);
    free(host);
    free(value);
    return r;
}

static int refill(const struct encoder *c, const struct kept_source *s, struct error *e)
{
    void *kept;
    memcpy(&kept, s->to, sizeof kept);
    if (!s->tensor)
        return 0;
    if (s->kind == KEPT_RELATIVE)
        return refill_expanded(c, s, kept, e);
    return c->backend->training->refill(c->state, kept, s->type, s->tensor->data,
                                        s->tensor->parameter.count, e);
}

/* The largest matrices come last in the list, and are begun first. */
static int repack_all(const struct engine *g, const struct encoder_sources *list,
                      struct error *e)
{
    const struct encoder *c = g->encoder;
    int failed = 0;
#pragma omp parallel reduction(| : failed) num_threads((int)g->threads)
    {
        struct error own = {0};
        omp_set_num_threads(
            1); /* a team of one thread could be divided by the products' library */
#pragma omp for schedule(dynamic, 1)
        for (uint32_t k = 0; k < 2 * list->linears; k++) {
            const struct again a = {c, &list->linear[list->linears - 1 - k / 2], k % 2, &own};
            if (!a.twin || a.source->twin)
                failed |= repack(&a) < 0;
        }
#pragma omp critical
        if (own.text[0] && e)
            *e = own;
    }
    for (uint32_t k = 0; k < list->kepts && !failed; k++)
        failed = refill(c, &list->kept[k], e) < 0;
    const struct training_backend *to = c->backend->training;
    if (to->repack_end && to->repack_end(c->state, failed, e) < 0)
        failed = 1;
    return failed ? -1 : 0;
}

static bool kept_are_on_device(const struct encoder_sources *list)
{
    for (uint32_t k = 0; k < list->kepts; k++)
        if (list->kept[k].tensor && !list->kept[k].tensor->on_device)
            return false;
    return true;
}

int engine_repack(struct engine *g, struct error *e)
{
    struct encoder_sources list;
    if (!g->trains || g->outline)
        return error_set(e, ERROR_INPUT, "the engine was not loaded for training");
    encoder_sources_list(g, &list);
    int r = kept_are_on_device(&list)
                ? repack_all(g, &list, e)
                : error_set(e, ERROR_INPUT, "the engine's parameters are no state's");
    encoder_sources_finish(&list);
    return r;
}

void encoder_destroy(struct encoder *c)
{
    if (!c)
        return;
    attention_finish(&c->attention);
    if (c->backend)
        c->backend->close(c->state);
    free(c->slices);
    free(c->layer);
    free(c);
}
