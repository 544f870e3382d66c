/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gradients/state.h"
#include "masks/base/memory.h"
#include <stdlib.h>
#include <string.h>

static uint64_t padded(uint64_t count)
{
    return (count + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN;
}

static bool trains(const struct engine *g, const struct tensor *t)
{
    return t->parameter.part & g->parts && (t->data || g->outline);
}

uint64_t train_state_count(const struct engine *g)
{
    uint64_t ret = 0;
    for (uint32_t k = 0; k < g->weights.n_tensors; k++)
        if (trains(g, &g->weights.tensor[k]))
            ret += padded(g->weights.tensor[k].parameter.count);
    return ret;
}

static void add_piece(struct train_state *s, const struct tensor *t)
{
    const uint64_t count = t->parameter.count;
    s->piece[s->pieces++] = (struct piece){&t->parameter, s->count, count, t->parameter.decays};
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

static float *new_buffer(uint64_t count)
{
    size_t bytes = count * sizeof(float);
    float *ret = memory_large(&bytes);
    memset(ret, 0, bytes);
    return ret;
}

/* The engine reads the parameters from here on where training writes them. */
static void take_over(struct train_state *s, struct engine *g)
{
    for (uint32_t k = 0; k < s->pieces; k++) {
        const struct piece *p = &s->piece[k];
        struct tensor *t = weights_get(&g->weights, p->parameter->id, p->parameter->layer);
        float *to = s->value + p->first;
        tensor_to_f32(t, 0, p->count, to);
        free(t->own);
        t->own = NULL;
        t->data = to;
        t->element = ELEMENT_F32;
    }
}

int train_state_new(struct engine *g, struct train_state **ret, struct error *e)
{
    if (!g->trains || g->outline)
        return error_set(e, ERROR_INPUT, "the engine was not loaded for training");
    struct train_state *s = memory_new(1, sizeof *s);
    add_pieces(s, g);
    s->value = new_buffer(s->count);
    s->gradient = new_buffer(s->count);
    s->first_moment = new_buffer(s->count);
    s->second_moment = new_buffer(s->count);
    take_over(s, g);
    *ret = s;
    return 0;
}

void train_state_destroy(struct train_state *s)
{
    if (!s)
        return;
    free(s->piece);
    free(s->value);
    free(s->gradient);
    free(s->first_moment);
    free(s->second_moment);
    free(s);
}

const struct piece *train_state_piece(const struct train_state *s, enum parameter_id id,
                                      uint32_t layer)
{
    for (uint32_t k = 0; k < s->pieces; k++)
        if (s->piece[k].parameter->id == id && s->piece[k].parameter->layer == layer)
            return &s->piece[k];
    return NULL;
}
