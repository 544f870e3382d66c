/* SPDX-License-Identifier: Apache-2.0 */
#include "model/probe/probe.h"
#include "masks/base/memory.h"
#include "model/engine/encoder.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int probe_check(const struct engine *g, struct error *e)
{
    return g->config.relative ? error_set(e, ERROR_INPUT,
                                          "attention of a model whose scores have a bias is "
                                          "not supported")
                              : 0;
}

float *probe_rows(const struct engine *g, const struct probe *p, const void *of)
{
    const uint32_t dim = g->encoder->attention.head_dim;
    float *ret = memory_new((size_t)p->n * dim, sizeof *ret);
    for (uint32_t i = 0; i < p->n; i++) {
        const uint64_t at = (p->first + i) * p->seen->row + p->head * p->seen->head;
        elements_to_f32(g->dtype, (const uint8_t *)of + at * element_bytes(g->dtype), dim,
                        ret + (size_t)i * dim);
    }
    return ret;
}

static float dot(const float *a, const float *b, uint32_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (uint32_t k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

static void make_softmax(float *z, uint32_t count)
{
    float most = -HUGE_VALF, sum = 0;
    for (uint32_t k = 0; k < count; k++)
        most = fmaxf(most, z[k]);
    for (uint32_t k = 0; k < count; k++)
        sum += z[k] = expf(z[k] - most);
    for (uint32_t k = 0; k < count; k++)
        z[k] /= sum;
}

/* Sparsegen-lin: relu((z - tau) / (1 - lambda)) with the tau that makes the sum 1, by Michelot's
   iteration: the support only shrinks. */
static void make_sparsegen(float *z, uint32_t count, float lambda)
{
    double tau = -HUGE_VAL, before;
    do {
        double sum = 0;
        uint32_t support = 0;
        for (uint32_t k = 0; k < count; k++)
            if ((double)z[k] > tau) {
                sum += (double)z[k];
                support++;
            }
        before = tau;
        tau = (sum - (1 - (double)lambda)) / support;
    } while (tau > before);
    for (uint32_t k = 0; k < count; k++)
        z[k] = (float)fmax(((double)z[k] - tau) / (1 - (double)lambda), 0);
}

/* A head of one sequence. */
struct head_rows {
    const struct attention *a;
    const struct pattern *pattern;
    uint32_t n;
    const float *query, *key; /* [n, head_dim] */
    float *score;             /* [n]: scratch */
};

static void run_row(const struct head_rows *h, uint32_t i, float *ret)
{
    const struct pattern *pattern = h->pattern;
    const uint32_t dim = h->a->head_dim;
    uint32_t count = 0, at = 0;
    memset(ret, 0, h->n * sizeof *ret);
    for (uint64_t r = pattern->row[i]; r < pattern->row[i + 1]; r++)
        for (uint32_t j = pattern->run[r].begin; j < pattern->run[r].end && j < h->n; j++)
            h->score[count++] =
                h->a->scale * dot(h->query + (size_t)i * dim, h->key + (size_t)j * dim, dim);
    if (!count)
        return;
    if (h->a->transform.sparsegen)
        make_sparsegen(h->score, count, h->a->transform.lambda);
    else
        make_softmax(h->score, count);
    for (uint64_t r = pattern->row[i]; r < pattern->row[i + 1]; r++)
        for (uint32_t j = pattern->run[r].begin; j < pattern->run[r].end && j < h->n; j++)
            ret[j] = h->score[at++];
}

void probe_run(const struct engine *g, const struct probe *p, float *ret)
{
    const struct attention *a = &g->encoder->attention;
    float *query = probe_rows(g, p, p->seen->query), *key = probe_rows(g, p, p->seen->key);
    float *score = memory_new(p->n, sizeof *score);
    const struct head_rows h = {
        a, attention_pattern(a, p->seen->layer, p->head), p->n, query, key, score};
    for (uint32_t i = 0; i < p->n; i++)
        run_row(&h, i, ret + (size_t)i * p->n);
    free(query);
    free(key);
    free(score);
}
