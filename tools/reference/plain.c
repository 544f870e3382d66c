/* SPDX-License-Identifier: Apache-2.0 */
/* The plain way to compute attention in a 16-bit type: inputs in that type, scores and sums in f32,
   P and dS rounded to the type before they are multiplied, outputs rounded. In tf32 the same, but that
   tensors are f32: inputs are rounded for products, outputs not. How far this is from
   float64 is how far a kernel may be, 1.5 times over. */
#include "masks/base/memory.h"
#include "tools/reference/check.h"
#include <math.h>
#include <stdlib.h>

/* One (sequence, head) in f32: four operands and four results, each as rows [N][D]. d_k and d_v add
   up over the query heads that share a key head. */
struct head {
    const struct problem *p;
    uint32_t b, h, queries, n, D; /* n: keys */
    float *q, *k, *v, *d_o, *o, *d_q, *d_k, *d_v;
    float *score, *prob, *dprob; /* [n] */
    const double *x; /* the head's bias [n of the mask][n of the mask], or null, ... */
    double *d_x;     /* ... and its gradient */
    float *sorted;
};

static float rounded(const struct head *w, float x)
{
    return (float)dtype_round(w->p->dtype, x);
}

static float dot(const float *a, const float *b, uint32_t count)
{
    float sum = 0;
    for (uint32_t d = 0; d < count; d++)
        sum += a[d] * b[d];
    return sum;
}

static void add(float *to, float factor, const float *from, uint32_t count)
{
    for (uint32_t d = 0; d < count; d++)
        to[d] += factor * from[d];
}

static double bias_of(const struct head *w, enum abi_bias kind, uint32_t i, uint32_t j,
                      double without)
{
    return w->p->bias == kind ? w->x[(uint64_t)i * w->p->mask->n + j] : without;
}

static float find_lse(const struct head *w, uint32_t count)
{
    float largest = -INFINITY, sum = 0;
    for (uint32_t k = 0; k < count; k++)
        largest = fmaxf(largest, w->sorted[k]);
    for (uint32_t k = 0; k < count; k++)
        sum += expf(w->sorted[k] - largest);
    return count ? largest + logf(sum) : -INFINITY;
}

static int descending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

static float find_tau(const struct head *w, uint32_t count)
{
    float width = 1 - (float)w->p->lambda, sum = 0, tau = -INFINITY;
    qsort(w->sorted, count, sizeof *w->sorted, descending);
    for (uint32_t k = 0; k < count; k++) {
        sum += w->sorted[k];
        if (width + (float)(k + 1) * w->sorted[k] > sum)
            tau = (sum - width) / (float)(k + 1);
    }
    return tau;
}

/* Probabilities of row i, and -1 for keys that it does not see; returns lse or tau. */
static float find_probabilities(struct head *w, uint32_t i)
{
    const struct problem *p = w->p;
    const struct pattern *m = mask_pattern(p->mask, p->layer, w->h);
    uint32_t count = 0;
    for (uint32_t j = 0; j < w->n; j++)
        w->prob[j] = -1;
    for (uint64_t r = m->row[i]; r < m->row[i + 1]; r++)
        for (uint32_t j = m->run[r].begin; j < m->run[r].end && j < w->n; j++) {
            float bias = (float)bias_of(w, ABI_BIAS_ADD, i, j, 0);
            if (bias == -INFINITY)
                continue;
            w->score[j] = (float)problem_scale(p) *
                              dot(w->q + (uint64_t)i * w->D, w->k + (uint64_t)j * w->D, w->D) +
                          bias;
            w->sorted[count++] = w->score[j];
            w->prob[j] = 0;
        }
    bool sparse = p->transform == ABI_SPARSEGEN;
    float lse = sparse ? find_tau(w, count) : find_lse(w, count);
    for (uint32_t j = 0; j < w->n; j++)
        if (w->prob[j] == 0)
            w->prob[j] = sparse ? fmaxf(0, (w->score[j] - lse) / (1 - (float)p->lambda))
                                : expf(w->score[j] - lse);
    return lse;
}

static float kept(const struct head *w, uint32_t i, uint32_t j)
{
    float below = (float)round(65536 * w->p->dropout);
    if (below == 0)
        return 1;
    return (float)reference_draw(w->p->seed, problem_sample(w->p, w->b), w->h, i, j) < below
               ? 0
               : 65536 / (65536 - below);
}

static void run_backward(struct head *w, uint32_t i)
{
    bool sparse = w->p->transform == ABI_SPARSEGEN;
    const float *d_o = w->d_o + (uint64_t)i * w->D;
    float sum = 0, support = 0;
    for (uint32_t j = 0; j < w->n; j++)
        if (w->prob[j] >= 0) {
            float keep = kept(w, i, j), x = (float)bias_of(w, ABI_BIAS_SCALE, i, j, 1);
            float slope = keep * dot(d_o, w->v + (uint64_t)j * w->D, w->D);
            w->dprob[j] = slope * x;
            add(w->d_v + (uint64_t)j * w->D, rounded(w, keep * w->prob[j] * x), d_o, w->D);
            if (w->p->bias == ABI_BIAS_SCALE)
                w->d_x[(uint64_t)i * w->p->mask->n + j] += (double)(w->prob[j] * slope);
            sum += !sparse ? w->prob[j] * w->dprob[j] : w->prob[j] > 0 ? w->dprob[j] : 0;
            support += w->prob[j] > 0;
        }
    float mean = sparse && support > 0 ? sum / support : sum,
          scale = (float)problem_scale(w->p);
    for (uint32_t j = 0; j < w->n; j++)
        if (w->prob[j] > 0) {
            float slope = sparse ? 1 / (1 - (float)w->p->lambda) : w->prob[j];
            float dscore = rounded(w, slope * (w->dprob[j] - mean));
            if (w->p->bias == ABI_BIAS_ADD)
                w->d_x[(uint64_t)i * w->p->mask->n + j] += (double)dscore;
            add(w->d_q + (uint64_t)i * w->D, scale * dscore, w->k + (uint64_t)j * w->D, w->D);
            add(w->d_k + (uint64_t)j * w->D, scale * dscore, w->q + (uint64_t)i * w->D, w->D);
        }
}

/* Row i of a tensor [B, N, H, D], of queries or of keys. */
static double *element(const struct head *w, double *tensor, bool keys, uint32_t i)
{
    const struct problem *p = w->p;
    const uint32_t heads = keys ? problem_kv_heads(p) : p->mask->heads;
    const uint64_t row = (uint64_t)w->b * (keys ? problem_keys(p) : p->length) + i;
    return tensor + (row * heads + (uint64_t)w->h * heads / p->mask->heads) * w->D;
}

/* The head out of a tensor. */
static void gather(const struct head *w, float *to, double *from, bool keys)
{
    for (uint32_t i = 0; i < (keys ? w->n : w->queries); i++)
        for (uint32_t d = 0; d < w->D; d++)
            to[(uint64_t)i * w->D + d] = rounded(w, (float)element(w, from, keys, i)[d]);
}

/* Back into it; what was there is cleared for the next. */
static void scatter(const struct head *w, double *to, float *from, bool keys)
{
    for (uint32_t i = 0; i < (keys ? w->n : w->queries); i++)
        for (uint32_t d = 0; d < w->D; d++) {
            element(w, to, keys, i)[d] = dtype_held(w->p->dtype, from[(uint64_t)i * w->D + d]);
            from[(uint64_t)i * w->D + d] = 0;
        }
}

static void run_row(struct head *w, struct problem_data *d, uint32_t i)
{
    const struct problem *p = w->p;
    d->lse[((uint64_t)w->b * p->mask->heads + w->h) * p->length + i] = find_probabilities(w, i);
    for (uint32_t j = 0; j < w->n; j++)
        if (w->prob[j] > 0)
            add(w->o + (uint64_t)i * w->D,
                rounded(w, kept(w, i, j) * w->prob[j] *
                               (float)bias_of(w, ABI_BIAS_SCALE, i, j, 1)),
                w->v + (uint64_t)j * w->D, w->D);
}

static void run_head(struct head *w, struct problem_data *d, bool backward)
{
    const struct problem *p = w->p;
    const uint32_t group = p->mask->heads / problem_kv_heads(p);
    uint64_t square = (uint64_t)p->mask->n * p->mask->n;
    w->queries = problem_rows(p, w->b);
    w->n = problem_key_rows(p, w->b);
    w->x = p->bias ? d->x + w->h * square : NULL;
    w->d_x = p->bias && backward ? d->d_x + w->h * square : NULL;
    gather(w, w->q, d->q, false);
    gather(w, w->k, d->k, true);
    gather(w, w->v, d->v, true);
    gather(w, w->d_o, d->d_o, false);
    for (uint32_t i = 0; i < w->queries; i++) {
        if (p->sample && !p->sample[i])
            continue;
        run_row(w, d, i);
        if (backward)
            run_backward(w, i);
    }
    scatter(w, d->o, w->o, false);
    if (backward)
        scatter(w, d->d_q, w->d_q, false);
    if (backward && w->h % group == group - 1) {
        scatter(w, d->d_k, w->d_k, true);
        scatter(w, d->d_v, w->d_v, true);
    }
}

static void make_outputs(const struct problem *p, struct problem_data *d, bool backward)
{
    const uint64_t count = problem_elements(p), rows = count / p->head_dim;
    double **output[] = {&d->o, &d->d_q, &d->d_k, &d->d_v};
    for (int k = 0; k < (backward ? 4 : 1); k++) {
        free(*output[k]);
        *output[k] = memory_new(k < 2 ? count : problem_key_elements(p), sizeof(double));
    }
    if (p->bias && backward) {
        free(d->d_x);
        d->d_x = memory_new(problem_bias_elements(p), sizeof(double));
    }
    free(d->lse);
    d->lse = memory_new(rows, sizeof(double));
    for (uint64_t k = 0; k < rows; k++)
        d->lse[k] = p->sample && !p->sample[k % p->length] ? 0 : -INFINITY;
}

void reference_plain(const struct problem *p, struct problem_data *d, bool backward)
{
    make_outputs(p, d, backward);
    struct head w = {.p = p, .D = p->head_dim};
    const uint64_t n = p->length > problem_keys(p) ? p->length : problem_keys(p);
    const uint64_t size = n * p->head_dim;
    float *all = memory_new(8 * size + 4 * n, sizeof *all);
    float **part[] = {&w.q, &w.k, &w.v, &w.d_o, &w.o, &w.d_q, &w.d_k, &w.d_v};
    for (int k = 0; k < 8; k++)
        *part[k] = all + (uint64_t)k * size;
    w.score = all + 8 * size;
    w.prob = w.score + n;
    w.dprob = w.prob + n;
    w.sorted = w.dprob + n;
    for (w.b = 0; w.b < p->batch; w.b++)
        for (w.h = 0; w.h < p->mask->heads; w.h++)
            run_head(&w, d, backward);
    if (p->bias && backward)
        problem_sum_diagonals(p, d);
    free(all);
}
