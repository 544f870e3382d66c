/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients of a layer's weights: one list, which threads work off by blocks. */
#include "masks/base/memory.h"
#include "model/backend/cpu/train/backward.h"
#include <stdlib.h>

struct gradient_list {
    struct weight_gradient *each;
    uint32_t count;
};

static void add_gradient(const struct cpu_batch *p, struct gradient_list *list,
                         struct weight_gradient one)
{
    one.rows = p->tokens;
    one.type = p->g->dtype;
    list->each[list->count++] = one;
}

/* Padded heads one by one. */
static void add_projection(const struct cpu_batch *p, uint32_t layer,
                           const struct layer_tape *t, struct gradient_list *list)
{
    static const enum parameter_id ids[] = {PARAMETER_QUERY_WEIGHT, PARAMETER_KEY_WEIGHT,
                                            PARAMETER_VALUE_WEIGHT};
    const struct attention *a = &p->c->attention;
    const uint64_t hidden = p->g->config.hidden, columns = (uint64_t)a->heads * a->padded_dim;
    const bool whole = a->padded_dim == a->head_dim;
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t h = 0; h < (whole ? 1 : a->heads); h++)
            add_gradient(p, list,
                         (struct weight_gradient){
                             .in = (uint32_t)hidden,
                             .out = whole ? (uint32_t)columns : a->head_dim,
                             .dy = cpu_batch_row(p, p->training->backward->d_projection, 1,
                                                 k * columns + (uint64_t)h * a->padded_dim),
                             .dy_row = 3 * columns,
                             .x = t->hidden,
                             .x_row = hidden,
                             .dw = backward_gradient(p, ids[k], layer) +
                                   (uint64_t)h * a->head_dim * hidden,
                             .dw_row = hidden,
                         });
}

static void add_output(const struct cpu_batch *p, uint32_t layer, const struct layer_tape *t,
                       struct gradient_list *list)
{
    const struct attention *a = &p->c->attention;
    const uint64_t hidden = p->g->config.hidden, columns = (uint64_t)a->heads * a->padded_dim;
    const bool whole = a->padded_dim == a->head_dim;
    for (uint32_t h = 0; h < (whole ? 1 : a->heads); h++)
        add_gradient(p, list,
                     (struct weight_gradient){
                         .in = whole ? (uint32_t)columns : a->head_dim,
                         .out = (uint32_t)hidden,
                         .dy = p->training->backward->d_output,
                         .dy_row = hidden,
                         .x = cpu_batch_row(p, t->context, 1, (uint64_t)h * a->padded_dim),
                         .x_row = columns,
                         .dw = backward_gradient(p, PARAMETER_OUTPUT_WEIGHT, layer) +
                               (uint64_t)h * a->head_dim,
                         .dw_row = hidden,
                     });
}

static void add_feed(const struct cpu_batch *p, uint32_t layer, const struct layer_tape *t,
                     struct gradient_list *list)
{
    const struct model_config *m = &p->g->config;
    const struct backward *b = p->training->backward;
    const uint32_t slices = p->c->feed.slices, width = m->intermediate / slices;
    float *inner = backward_gradient(p, PARAMETER_INNER_WEIGHT, layer),
          *outer = backward_gradient(p, PARAMETER_OUTER_WEIGHT, layer);
    for (uint32_t k = 0; k < slices; k++) {
        const uint64_t first = (uint64_t)k * width;
        add_gradient(p, list,
                     (struct weight_gradient){.in = m->hidden,
                                              .out = width,
                                              .dy = cpu_batch_slice_row(p, b->d_pre, k, 0),
                                              .dy_row = width,
                                              .x = t->middle,
                                              .x_row = m->hidden,
                                              .dw = inner + first * m->hidden,
                                              .dw_row = m->hidden});
        add_gradient(p, list,
                     (struct weight_gradient){.in = width,
                                              .out = m->hidden,
                                              .dy = b->d_outer,
                                              .dy_row = m->hidden,
                                              .x = cpu_batch_slice_row(p, t->inner, k, 0),
                                              .x_row = width,
                                              .dw = outer + first,
                                              .dw_row = m->intermediate});
    }
}

int backward_weights(const struct cpu_batch *p, uint32_t layer, struct error *e)
{
    const struct cpu_batch *rest = backward_rest(p, layer);
    struct gradient_list list = {
        memory_new(4 * (size_t)p->g->config.heads + 2 * (size_t)p->c->feed.slices,
                   sizeof *list.each),
        0};
    add_projection(p, layer, cpu_batch_layer(p, layer), &list);
    add_output(rest, layer, cpu_batch_layer(rest, layer), &list);
    add_feed(rest, layer, cpu_batch_layer(rest, layer), &list);
    int r =
        matmul_weight_gradients(p->c->state->matmul, list.each, list.count, p->g->threads, e);
    free(list.each);
    return r;
}
