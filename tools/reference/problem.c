/* SPDX-License-Identifier: Apache-2.0 */
/* Random inputs of a problem, normally distributed and rounded to the kernel's type. */
#include "gen/key_shape.h"
#include "masks/base/memory.h"
#include "tools/reference/check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct problem problem_of(const struct maskc_kernel *k)
{
    const struct artifact *a = k->artifact;
    return (struct problem){
        .mask = a->mask,
        .batch = 1,
        .length = request_queries(&a->request, a->mask),
        .key_length = a->request.keys,
        .kv_heads = a->request.kv_heads,
        .head_dim = a->request.head_dim,
        .dtype = a->request.dtype,
        .transform = a->request.transform,
        .lambda = (double)a->request.lambda,
        .bias = a->request.bias,
    };
}

uint32_t problem_rows(const struct problem *p, uint32_t b)
{
    const uint32_t most = p->length - problem_start(p, b);
    uint32_t n = p->lengths ? (uint32_t)p->lengths[b] : most;
    return n < most ? n : most;
}

uint32_t problem_kv_heads(const struct problem *p)
{
    return p->kv_heads ? p->kv_heads : p->mask->heads;
}

uint32_t problem_keys(const struct problem *p)
{
    return p->key_length ? p->key_length : p->length;
}

uint32_t problem_key_rows(const struct problem *p, uint32_t b)
{
    if (!p->key_length)
        return problem_rows(p, b);
    return p->key_lengths ? (uint32_t)p->key_lengths[b] : p->key_length;
}

uint64_t problem_key_elements(const struct problem *p)
{
    return (uint64_t)p->batch * problem_keys(p) * problem_kv_heads(p) * p->head_dim;
}

uint32_t problem_start(const struct problem *p, uint32_t b)
{
    return p->starts ? (uint32_t)p->starts[b] : 0;
}

uint32_t problem_sample(const struct problem *p, uint32_t b)
{
    return p->samples ? p->samples[b] : b;
}

uint64_t problem_elements(const struct problem *p)
{
    return (uint64_t)p->batch * p->length * p->mask->heads * p->head_dim;
}

uint64_t problem_bias_elements(const struct problem *p)
{
    return p->bias ? (uint64_t)p->mask->heads * p->mask->n * p->mask->n : 0;
}

uint64_t problem_diagonal_elements(const struct problem *p)
{
    return p->bias ? p->mask->heads * (2 * (uint64_t)p->mask->n - 1) : 0;
}

double problem_scale(const struct problem *p)
{
    return p->scale != 0 || p->scale_given ? p->scale : 1 / sqrt(p->head_dim);
}

int problem_fits(const struct problem *p, struct error *e)
{
    /* Inputs as doubles and, twice, what a launch reads and writes. */
    const double element_bytes = 96, bias_bytes = 64;
    const double rows = p->length > problem_keys(p) ? p->length : problem_keys(p);
    double needed = element_bytes * p->batch * rows * p->mask->heads * p->head_dim +
                    bias_bytes * (double)problem_bias_elements(p);
    double present = memory_physical();
    if (present == 0 || needed <= present)
        return 0;
    return error_set(e, ERROR_UNAVAILABLE,
                     "%u sequences of length %u with %u heads of dim %u need about %.3g GB, "
                     "this machine has %.3g",
                     p->batch, p->length, p->mask->heads, p->head_dim, needed / 1e9,
                     present / 1e9);
}

uint64_t problem_multiply_adds(const struct problem *p, bool backward)
{
    uint64_t entries = 0;
    for (uint32_t b = 0; b < p->batch; b++)
        for (uint32_t h = 0; h < p->mask->heads; h++) {
            const struct pattern *m = mask_pattern(p->mask, p->layer, h);
            const uint32_t n = problem_key_rows(p, b), queries = problem_rows(p, b);
            for (uint32_t i = 0; i < queries; i++)
                if (!p->sample || p->sample[i])
                    for (uint64_t r = m->row[i]; r < m->row[i + 1] && m->run[r].begin < n; r++)
                        entries += (m->run[r].end < n ? m->run[r].end : n) - m->run[r].begin;
        }
    return entries * p->head_dim * (backward ? 6 : 2);
}

/* Element k of stream `stream`: Box-Muller over two draws. */
static double normal(uint64_t seed, uint32_t stream, uint64_t k)
{
    uint32_t counter[4] = {(uint32_t)k, (uint32_t)(k >> 32), stream, 0x6D61736B};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, w[4];
    reference_philox(counter, key, w);
    double u = (w[0] + 0.5) * 0x1p-32, v = (w[1] + 0.5) * 0x1p-32;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static double *make_tensor(const struct problem *p, uint64_t count, uint32_t stream)
{
    double *ret = memory_new(count, sizeof *ret);
    for (uint64_t k = 0; k < count; k++)
        ret[k] = dtype_held(p->dtype, normal(p->random_seed, stream, k));
    return ret;
}

static uint32_t count_sample(const struct problem *p)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < p->length; i++)
        rows += !p->sample || p->sample[i];
    return rows;
}

/* The fewer rows there are, the larger they get: the gradients of keys, which sum over them, then
   are of the size that they have without a sample. */
static void sample_rows(const struct problem *p, double *d_o)
{
    uint64_t width = (uint64_t)p->mask->heads * p->head_dim;
    double factor = p->sample ? sqrt((double)p->length / count_sample(p)) : 1;
    for (uint64_t k = 0; p->sample && k < (uint64_t)p->batch * p->length * width; k++)
        d_o[k] = p->sample[k / width % p->length] ? dtype_held(p->dtype, factor * d_o[k]) : 0;
}

/* Bias like a scale: some entries below 0, most near 1. */
static double *make_bias(const struct problem *p)
{
    uint64_t count = problem_bias_elements(p);
    double *ret = count ? memory_new(count, sizeof *ret) : NULL;
    for (uint64_t k = 0; k < count; k++)
        ret[k] = dtype_round(ABI_F32, 1 + normal(p->random_seed, 4, k));
    return ret;
}

void problem_sum_diagonals(const struct problem *p, struct problem_data *d)
{
    uint64_t n = p->mask->n;
    free(d->d_diagonal);
    d->d_diagonal = memory_new(problem_diagonal_elements(p), sizeof *d->d_diagonal);
    for (uint64_t k = 0; k < problem_bias_elements(p); k++) {
        uint64_t h = k / (n * n), i = k / n % n, j = k % n;
        d->d_diagonal[h * (2 * n - 1) + n - 1 + j - i] += d->d_x[k];
    }
}

struct problem_data *problem_inputs(const struct problem *p)
{
    struct problem_data *d = memory_new(1, sizeof *d);
    d->q = make_tensor(p, problem_elements(p), 0);
    d->k = make_tensor(p, problem_key_elements(p), 1);
    d->v = make_tensor(p, problem_key_elements(p), 2);
    d->d_o = make_tensor(p, problem_elements(p), 3);
    d->x = make_bias(p);
    sample_rows(p, d->d_o);
    return d;
}

struct problem_data *problem_data_copy(const struct problem *p, const struct problem_data *d)
{
    const uint64_t bytes = problem_elements(p) * sizeof(double),
                   key_bytes = problem_key_elements(p) * sizeof(double);
    struct problem_data *ret = memory_new(1, sizeof *ret);
    ret->q = memory_copy(d->q, bytes);
    ret->k = memory_copy(d->k, key_bytes);
    ret->v = memory_copy(d->v, key_bytes);
    ret->d_o = memory_copy(d->d_o, bytes);
    ret->x = d->x ? memory_copy(d->x, problem_bias_elements(p) * sizeof(double)) : NULL;
    return ret;
}

/* Keeps the sampled rows of a tensor [outer, N, width]. */
static void keep_rows(const struct problem *p, double *tensor, uint64_t outer, uint64_t width)
{
    uint64_t kept = 0;
    for (uint64_t k = 0; tensor && k < outer * p->length; k++)
        if (p->sample[k % p->length])
            memmove(tensor + kept++ * width, tensor + k * width, width * sizeof *tensor);
}

uint64_t problem_keep_sample(const struct problem *p, struct problem_data *d)
{
    uint64_t heads = p->mask->heads, width = heads * p->head_dim;
    if (p->sample) {
        keep_rows(p, d->o, p->batch, width);
        keep_rows(p, d->d_q, p->batch, width);
        keep_rows(p, d->lse, p->batch * heads, 1);
    }
    return p->batch * count_sample(p) * width;
}

void problem_data_destroy(struct problem_data *d)
{
    if (!d)
        return;
    double *all[] = {d->q,   d->k,   d->v,   d->d_o, d->o,   d->lse,
                     d->d_q, d->d_k, d->d_v, d->x,   d->d_x, d->d_diagonal};
    for (unsigned k = 0; k < sizeof all / sizeof *all; k++)
        free(all[k]);
    free(d);
}
