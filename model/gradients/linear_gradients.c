/* SPDX-License-Identifier: Apache-2.0 */
#include "model/gradients/linear_gradients.h"
#include "masks/base/memory.h"

float *train_state_gradient(const struct train_state *s, enum parameter_id id, uint32_t layer)
{
    const struct piece *piece = train_state_piece(s, id, layer);
    return piece ? s->gradient + piece->first : NULL;
}

/* Element k of an array of the shape's x. */
static const void *element(const struct linear_gradients *l, const void *array, uint64_t k)
{
    return (const uint8_t *)array + k * element_bytes(l->shape->x);
}

/* Matrix m of the parameters, head h of it; heads that are not padded are one. */
static struct weight_gradient gradient_of(const struct linear_gradients *l, uint32_t m,
                                          uint32_t h)
{
    const struct attention *a = l->attention;
    const struct op_parameters *o = l->parameters;
    const struct linear_shape *s = l->shape;
    const bool whole = a->padded_dim == a->head_dim, out = o->heads == OP_HEADS_OUT,
               in = o->heads == OP_HEADS_IN;
    const uint64_t at = (uint64_t)h * a->head_dim, padded_at = (uint64_t)h * a->padded_dim;
    const uint32_t columns = s->out / o->matrices,
                   row = in ? a->heads * a->head_dim : s->in; /* of the parameter */
    const uint64_t before = o->whole ? (uint64_t)m * a->heads * a->head_dim * row : 0;
    return (struct weight_gradient){
        .in = in && !whole ? a->head_dim : s->in,
        .out = out && !whole ? a->head_dim : columns,
        .rows = l->rows,
        .type = s->x,
        .dy = element(l, l->dy, (uint64_t)m * columns + (out ? padded_at : 0)),
        .dy_row = s->out,
        .x = element(l, l->x, in ? padded_at : 0),
        .x_row = s->in,
        .dw = train_state_gradient(l->state, o->weight + (o->whole ? 0 : 2 * m), o->layer) +
              before + (out ? at * row : at),
        .dw_row = row,
    };
}

struct weight_gradient *linear_gradients_list(const struct linear_gradients *l,
                                              uint32_t *ret_count)
{
    const struct attention *a = l->attention;
    const struct op_parameters *o = l->parameters;
    const bool padded = o->heads != OP_NO_HEADS && a->padded_dim != a->head_dim;
    const uint32_t heads = padded ? a->heads : 1;
    struct weight_gradient *list = memory_new((size_t)o->matrices * heads, sizeof *list);
    *ret_count = 0;
    for (uint32_t m = 0; m < o->matrices; m++)
        for (uint32_t h = 0; h < heads; h++)
            list[(*ret_count)++] = gradient_of(l, m, h);
    return list;
}
