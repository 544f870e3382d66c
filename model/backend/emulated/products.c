/* SPDX-License-Identifier: Apache-2.0 */
#include "model/backend/emulated/products.h"
#include "masks/base/memory.h"
#include "runtime/device/emulated/emulated_stream.h"
#include <stdlib.h>

static float dot(const float *a, const float *b, uint32_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (uint32_t k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

/* One row of W against all rows of x: a column of y. `row` is scratch for [in] elements. */
static void multiply_column(const struct gpu_product *p, uint32_t column, const float *x,
                            float *row)
{
    const struct linear_shape *s = &p->l->shape;
    const uint8_t *weight = p->l->packed;
    uint8_t *y = p->y;
    elements_to_f32(s->x, weight + (uint64_t)column * s->in * element_bytes(s->x), s->in, row);
    for (uint32_t r = 0; r < p->rows; r++) {
        float sum = dot(x + (uint64_t)r * s->in, row, s->in);
        if (p->adds)
            sum += ((const float *)p->y)[(uint64_t)r * s->out + column];
        elements_from_f32(s->y, &sum, 1,
                          y + ((uint64_t)r * s->out + column) * element_bytes(s->y));
    }
}

/* The linear is the caller's. */
struct own_product {
    struct gpu_product of;
    struct linear l;
};

static int run_product(const void *arguments, struct error *e)
{
    const struct own_product *own = arguments;
    struct gpu_product with = own->of;
    const struct gpu_product *p = &with;
    const struct linear_shape *s = &own->l.shape;
    float *x = memory_new((uint64_t)p->rows * s->in, sizeof *x);
    (void)e;
    with.l = &own->l;
    elements_to_f32(s->x, p->x, (uint64_t)p->rows * s->in, x);
#pragma omp parallel
    {
        float *row = memory_new(s->in, sizeof *row);
#pragma omp for
        for (uint32_t column = 0; column < s->out; column++)
            multiply_column(p, column, x, row);
        free(row);
    }
    free(x);
    return 0;
}

int emulated_product(const struct gpu *g, struct gpu_stream *s, const struct gpu_product *p,
                     bool *ret_fused, struct error *e)
{
    const struct own_product own = {*p, *p->l};
    (void)g;
    gpu_stream_count(s);
    *ret_fused = false;
    return emulated_submit(s->emulated, &(struct emulated_work){run_product, &own, sizeof own},
                           e);
}

/* Row o of dW. `row` is scratch for [in] elements. */
static void add_gradient_row(const struct weight_gradient *w, uint32_t o, float *row)
{
    const uint64_t size = element_bytes(w->type);
    float *dw = w->dw + o * w->dw_row, dy;
    for (uint64_t r = 0; r < w->rows; r++) {
        elements_to_f32(w->type, (const uint8_t *)w->dy + (r * w->dy_row + o) * size, 1, &dy);
        elements_to_f32(w->type, (const uint8_t *)w->x + r * w->x_row * size, w->in, row);
#pragma omp simd
        for (uint32_t k = 0; k < w->in; k++)
            dw[k] += dy * row[k];
    }
}

static int run_weight_gradient(const void *arguments, struct error *e)
{
    const struct weight_gradient *w = arguments;
    (void)e;
#pragma omp parallel
    {
        float *row = memory_new(w->in, sizeof *row);
#pragma omp for
        for (uint32_t o = 0; o < w->out; o++)
            add_gradient_row(w, o, row);
        free(row);
    }
    return 0;
}

int emulated_weight_gradient(const struct gpu *g, struct gpu_stream *s,
                             const struct weight_gradient *w, struct error *e)
{
    (void)g;
    gpu_stream_count(s);
    return emulated_submit(s->emulated,
                           &(struct emulated_work){run_weight_gradient, w, sizeof *w}, e);
}
