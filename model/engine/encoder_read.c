/* SPDX-License-Identifier: Apache-2.0 */
/* Values of linears, out of their tensors. */
#include "model/backend/training.h"
#include "model/engine/encoder_sources.h"
#include <string.h>

/* Element k of a row or column after padding. */
static uint64_t padded_at(const struct linear_source *s, uint64_t k)
{
    return k / s->head_dim * s->padded_dim + k % s->head_dim;
}

/* Values of a tensor to the host. */
static int read_values(const struct training_device *d, const struct tensor *t, uint64_t first,
                       uint64_t count, float *ret, struct error *e)
{
    if (t->on_device)
        return d->does->array_read(d->state, (const float *)t->data + first, count, ret, e);
    tensor_to_f32(t, first, count, ret);
    return 0;
}

struct matrix_row {
    uint32_t matrix, row;
};

/* ret: the row of `weight` that it becomes, zeroed. */
static int read_row(const struct linear_source *s, const struct training_device *d,
                    struct matrix_row r, float *ret, struct error *e)
{
    const struct tensor *t = s->weight[r.matrix];
    const uint64_t from = s->first + r.row * s->row;
    int result = 0;
    if (s->padded != PADDED_COLUMNS)
        return read_values(d, t, from, s->columns, ret, e);
    for (uint32_t k = 0; k < s->columns && result == 0; k += s->head_dim)
        result = read_values(d, t, from + k, s->head_dim, ret + padded_at(s, k), e);
    return result;
}

int linear_source_read(const struct linear_source *s, const struct training_device *d,
                       float *weight, float *bias, struct error *e)
{
    const uint32_t in = s->shape.in, out = s->shape.out;
    int result = 0;
    memset(weight, 0, (size_t)out * in * sizeof *weight);
    memset(bias, 0, out * sizeof *bias);
    for (uint32_t m = 0; m < s->matrices; m++)
        for (uint32_t r = 0; r < s->rows && result == 0; r++) {
            const uint64_t to = (uint64_t)m * (out / s->matrices) +
                                (s->padded == PADDED_ROWS ? padded_at(s, r) : r);
            result = read_row(s, d, (struct matrix_row){m, r}, weight + to * in, e);
            if (result == 0 && !s->no_bias)
                result = read_values(d, s->bias[m], s->first_bias + r, 1, bias + to, e);
        }
    return result;
}

/* Null: not on a device. */
static const float *values_of(const struct tensor *t)
{
    return t->on_device ? t->data : NULL;
}

/* True if the tensors are adjacent in memory. */
static bool are_adjacent(const struct tensor *const *list, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        if (!values_of(list[k]) ||
            (k > 0 &&
             values_of(list[k]) != values_of(list[k - 1]) + list[k - 1]->parameter.count))
            return false;
    return true;
}

bool linear_source_view(const struct linear_source *s, struct weight_view *weight,
                        const float **bias)
{
    if (s->padded != PADDED_NONE || !are_adjacent(s->weight, s->matrices) ||
        (!s->no_bias && !are_adjacent(s->bias, s->matrices)))
        return false;
    *weight = (struct weight_view){values_of(s->weight[0]) + s->first, s->row, 1, false};
    *bias = s->no_bias ? NULL : values_of(s->bias[0]) + s->first_bias;
    return true;
}
