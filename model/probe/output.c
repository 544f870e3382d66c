/* SPDX-License-Identifier: Apache-2.0 */
#include "model/probe/output.h"
#include "masks/base/memory.h"
#include "model/engine/encoder.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- G = R^T R ---- */

/* G of one head: W^T W of its columns of the output's weights [hidden, heads * dim]. */
static void make_gram(const float *weight, uint32_t rows, uint64_t row, uint32_t dim, double *g)
{
    for (uint32_t r = 0; r < rows; r++) {
        const float *w = weight + r * row;
        for (uint32_t i = 0; i < dim; i++)
            for (uint32_t j = i; j < dim; j++)
                g[i * dim + j] += (double)w[i] * (double)w[j];
    }
}

/* The upper triangle of g [dim, dim] becomes R. A pivot that rounding alone makes is none: a head without
   weights in some direction has a row of zeros there. */
static void make_factor(double *g, uint32_t dim, float *ret)
{
    double most = 0;
    for (uint32_t k = 0; k < dim; k++)
        most = fmax(most, g[k * dim + k]);
    for (uint32_t k = 0; k < dim; k++) {
        const double pivot = g[k * dim + k];
        const double inverse = pivot > 1e-12 * most ? 1 / sqrt(pivot) : 0;
        for (uint32_t j = k; j < dim; j++)
            g[k * dim + j] *= inverse;
        for (uint32_t i = k + 1; i < dim; i++)
            for (uint32_t j = i; j < dim; j++)
                g[i * dim + j] -= g[k * dim + i] * g[k * dim + j];
        for (uint32_t j = k; j < dim; j++)
            ret[k * dim + j] = (float)g[k * dim + j];
    }
}

static void make_layer(const struct engine *g, uint32_t layer, float *ret)
{
    const uint32_t dim = g->encoder->attention.head_dim, hidden = g->config.hidden;
    float *weight = memory_new((size_t)hidden * hidden, sizeof *weight);
    double *gram = memory_new((size_t)dim * dim, sizeof *gram);
    tensor_to_f32(weights_get(&g->weights, PARAMETER_OUTPUT_WEIGHT, layer), 0,
                  (uint64_t)hidden * hidden, weight);
    for (uint32_t h = 0; h < g->config.heads; h++, ret += (size_t)dim * dim) {
        for (uint32_t k = 0; k < dim * dim; k++)
            gram[k] = 0;
        make_gram(weight + (size_t)h * dim, hidden, hidden, dim, gram);
        make_factor(gram, dim, ret);
    }
    free(weight);
    free(gram);
}

struct output_factors output_factors_new(const struct engine *g)
{
    struct output_factors f = {g->config.layers, g->config.heads,
                               g->encoder->attention.head_dim, NULL};
    const size_t layer = (size_t)f.heads * f.head_dim * f.head_dim;
    f.factor = memory_new(f.layers * layer, sizeof *f.factor);
#pragma omp parallel for num_threads((int)g->threads)
    for (uint32_t l = 0; l < f.layers; l++)
        make_layer(g, l, f.factor + l * layer);
    return f;
}

void output_factors_finish(struct output_factors *f)
{
    free(f->factor);
    *f = (struct output_factors){0};
}

/* ---- P ---- */

/* Shared by the rows of one head. Vectors are stored by component, so that loops run along the keys. */
struct moved {
    uint32_t n, dim;
    float *to;       /* [dim, n]: R v_j */
    float *distance; /* [n]: scratch */
};

static void move_values(const float *factor, const float *value, const struct moved *m)
{
    for (uint32_t r = 0; r < m->dim; r++)
        for (uint32_t j = 0; j < m->n; j++) {
            float sum = 0;
            for (uint32_t k = r; k < m->dim; k++)
                sum += factor[r * m->dim + k] * value[(size_t)j * m->dim + k];
            m->to[(size_t)r * m->n + j] = sum;
        }
}

/* distance[j] = |R v_j - R o|^2, with o the mean of the values by p. */
static void measure_row(const struct moved *m, const float *p)
{
    float *distance = m->distance;
    for (uint32_t j = 0; j < m->n; j++)
        distance[j] = 0;
    for (uint32_t r = 0; r < m->dim; r++) {
        const float *to = m->to + (size_t)r * m->n;
        float mean = 0;
#pragma omp simd reduction(+ : mean)
        for (uint32_t j = 0; j < m->n; j++)
            mean += p[j] * to[j];
#pragma omp simd
        for (uint32_t j = 0; j < m->n; j++)
            distance[j] += (to[j] - mean) * (to[j] - mean);
    }
}

static double norm_of(const struct engine *g, const struct probe *p, uint32_t i, float *row)
{
    const uint64_t size = g->config.hidden;
    double squares = 0;
    elements_to_f32(g->dtype,
                    (const uint8_t *)p->seen->hidden +
                        (p->first + i) * size * element_bytes(g->dtype),
                    size, row);
    for (uint64_t k = 0; k < size; k++)
        squares += (double)row[k] * (double)row[k];
    return sqrt(squares);
}

void probe_output(const struct engine *g, const struct output_factors *f, const struct probe *p,
                  float *probability)
{
    const uint32_t n = p->n, dim = f->head_dim;
    const float *factor = f->factor + ((size_t)p->seen->layer * f->heads + p->head) * dim * dim;
    float *value = probe_rows(g, p, p->seen->value);
    float *row = memory_new(g->config.hidden, sizeof *row);
    struct moved m = {n, dim, memory_new((size_t)dim * n, sizeof(float)),
                      memory_new(n, sizeof(float))};
    move_values(factor, value, &m);
    for (uint32_t i = 0; i < n; i++) {
        float *a = probability + (size_t)i * n;
        const double norm = norm_of(g, p, i, row);
        const float inverse = norm > 0 ? (float)(1 / norm) : 0;
        measure_row(&m, a);
        for (uint32_t j = 0; j < n; j++)
            a[j] *= sqrtf(m.distance[j]) * inverse;
    }
    free(m.to);
    free(m.distance);
    free(row);
    free(value);
}
