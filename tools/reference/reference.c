/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in float64, as the contract's formulas say it: a full loop over i, j and d, one row at a
   time, nothing shared with the kernels, never optimised. Everything else is checked against this file. */
#include "masks/base/memory.h"
#include "tools/reference/check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One (sequence, head), and the row at hand. Arrays are [n]. */
struct row {
    const struct problem *p;
    struct problem_data *d;
    uint32_t b, h, n; /* n: keys of the sequence */
    uint8_t *active;
    double *score, *prob, *keep, *dprob, *sorted; /* keep: 0, or the factor of a kept entry */
    double lse;                                   /* or tau */
};

static uint64_t at(const struct row *r, uint32_t i)
{
    const struct problem *p = r->p;
    return (((uint64_t)r->b * p->length + i) * p->mask->heads + r->h) * p->head_dim;
}

/* Index of row j in K and V: query head h has the key head of its group. */
static uint64_t key_at(const struct row *r, uint32_t j)
{
    const struct problem *p = r->p;
    const uint32_t heads = problem_kv_heads(p), head = r->h / (p->mask->heads / heads);
    return (((uint64_t)r->b * problem_keys(p) + j) * heads + head) * p->head_dim;
}

static double dot(const double *a, const double *b, uint32_t count)
{
    double sum = 0;
    for (uint32_t d = 0; d < count; d++)
        sum += a[d] * b[d];
    return sum;
}

/* Entry (i, 0) of X or dX. */
static uint64_t bias_at(const struct row *r, uint32_t i)
{
    return ((uint64_t)r->h * r->p->mask->n + i) * r->p->mask->n;
}

/* The factor of a probability: X of a scale, 1 without. */
static double factor(const struct row *r, uint32_t i, uint32_t j)
{
    return r->p->bias == ABI_BIAS_SCALE ? r->d->x[bias_at(r, i) + j] : 1;
}

static void add(double *to, double factor, const double *from, uint32_t count)
{
    for (uint32_t d = 0; d < count; d++)
        to[d] += factor * from[d];
}

static void find_active(struct row *r, uint32_t i)
{
    const struct pattern *m = mask_pattern(r->p->mask, r->p->layer, r->h);
    memset(r->active, 0, r->n);
    for (uint64_t k = m->row[i]; k < m->row[i + 1]; k++)
        for (uint32_t j = m->run[k].begin; j < m->run[k].end && j < r->n; j++)
            r->active[j] = 1;
}

static void softmax(struct row *r)
{
    double largest = -INFINITY, sum = 0;
    for (uint32_t j = 0; j < r->n; j++)
        if (r->active[j])
            largest = fmax(largest, r->score[j]);
    for (uint32_t j = 0; j < r->n; j++)
        if (r->active[j])
            sum += exp(r->score[j] - largest);
    r->lse = sum > 0 ? largest + log(sum) : -INFINITY;
    for (uint32_t j = 0; j < r->n; j++)
        r->prob[j] = r->active[j] ? exp(r->score[j] - r->lse) : 0;
}

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Sparsegen-lin: p_j = max(0, (s_j - tau) / (1 - lambda)), tau such that they sum to 1. The support
   is the longest prefix of the sorted scores whose own tau lies below its last score. */
static void sparsegen(struct row *r)
{
    double width = 1 - r->p->lambda, sum = 0;
    uint32_t count = 0;
    for (uint32_t j = 0; j < r->n; j++)
        if (r->active[j])
            r->sorted[count++] = r->score[j];
    qsort(r->sorted, count, sizeof *r->sorted, descending);
    r->lse = -INFINITY;
    for (uint32_t k = 0; k < count; k++) {
        sum += r->sorted[k];
        if (width + (k + 1) * r->sorted[k] > sum)
            r->lse = (sum - width) / (k + 1);
    }
    for (uint32_t j = 0; j < r->n; j++)
        r->prob[j] = r->active[j] ? fmax(0, (r->score[j] - r->lse) / width) : 0;
}

static void find_kept(struct row *r, uint32_t i)
{
    double below = round(65536 * r->p->dropout);
    const uint32_t sample = problem_sample(r->p, r->b);
    for (uint32_t j = 0; j < r->n; j++)
        r->keep[j] = below == 0 ? 1
                     : reference_draw(r->p->seed, sample, r->h, i, j) < (uint32_t)below
                         ? 0
                         : 65536 / (65536 - below);
}

/* A key whose bias is -inf counts as inactive. */
static void find_scores(struct row *r, uint32_t i)
{
    for (uint32_t j = 0; j < r->n; j++)
        if (r->active[j]) {
            double bias = r->p->bias == ABI_BIAS_ADD ? r->d->x[bias_at(r, i) + j] : 0;
            r->score[j] = problem_scale(r->p) *
                              dot(r->d->q + at(r, i), r->d->k + key_at(r, j), r->p->head_dim) +
                          bias;
            r->active[j] = bias > -INFINITY;
        }
}

static void forward(struct row *r, uint32_t i)
{
    uint32_t D = r->p->head_dim;
    find_active(r, i);
    find_scores(r, i);
    if (r->p->transform == ABI_SPARSEGEN)
        sparsegen(r);
    else
        softmax(r);
    find_kept(r, i);
    for (uint32_t j = 0; j < r->n; j++)
        if (r->active[j])
            add(r->d->o + at(r, i), r->keep[j] * r->prob[j] * factor(r, i, j),
                r->d->v + key_at(r, j), D);
    r->d->lse[((uint64_t)r->b * r->p->mask->heads + r->h) * r->p->length + i] = r->lse;
}

/* Mean of dprob, which is subtracted from every dprob for the gradient of a score. Weighted by P (softmax), or over the
   support (sparsegen). */
static double mean_dprob(const struct row *r)
{
    double sum = 0;
    uint32_t support = 0;
    bool sparse = r->p->transform == ABI_SPARSEGEN;
    for (uint32_t j = 0; j < r->n; j++)
        if (r->prob[j] > 0) {
            sum += sparse ? r->dprob[j] : r->prob[j] * r->dprob[j];
            support++;
        }
    return sparse && support ? sum / support : sum;
}

static void backward(struct row *r, uint32_t i)
{
    struct problem_data *d = r->d;
    uint32_t D = r->p->head_dim;
    for (uint32_t j = 0; j < r->n; j++)
        if (r->active[j]) {
            double slope = r->keep[j] * dot(d->d_o + at(r, i), d->v + key_at(r, j), D);
            r->dprob[j] = slope * factor(r, i, j);
            add(d->d_v + key_at(r, j), r->keep[j] * r->prob[j] * factor(r, i, j),
                d->d_o + at(r, i), D);
            if (r->p->bias == ABI_BIAS_SCALE)
                d->d_x[bias_at(r, i) + j] += r->prob[j] * slope;
        }
    double mean = mean_dprob(r), scale = problem_scale(r->p);
    for (uint32_t j = 0; j < r->n; j++)
        if (r->prob[j] > 0) {
            double slope =
                r->p->transform == ABI_SPARSEGEN ? 1 / (1 - r->p->lambda) : r->prob[j];
            double dscore = slope * (r->dprob[j] - mean);
            if (r->p->bias == ABI_BIAS_ADD) {
                double part = slope * fmax(fabs(r->dprob[j]), fabs(mean));
                d->d_x[bias_at(r, i) + j] += dscore;
                d->d_x_parts += part * part; /* a norm at the end */
            }
            add(d->d_q + at(r, i), scale * dscore, d->k + key_at(r, j), D);
            add(d->d_k + key_at(r, j), scale * dscore, d->q + at(r, i), D);
        }
}

static double *renew(double *old, uint64_t count)
{
    free(old);
    return memory_new(count, sizeof *old);
}

static void make_outputs(const struct problem *p, struct problem_data *d, bool with_backward)
{
    uint64_t count = problem_elements(p), rows = count / p->head_dim;
    d->o = renew(d->o, count);
    d->lse = renew(d->lse, rows);
    for (uint64_t k = 0; k < rows; k++)
        d->lse[k] = p->sample && !p->sample[k % p->length] ? 0 : -INFINITY;
    if (with_backward) {
        d->d_q = renew(d->d_q, count);
        d->d_k = renew(d->d_k, problem_key_elements(p));
        d->d_v = renew(d->d_v, problem_key_elements(p));
        d->d_x_parts = 0;
        if (p->bias)
            d->d_x = renew(d->d_x, problem_bias_elements(p));
    }
}

static void run_head(struct row *r, bool with_backward)
{
    const uint32_t queries = problem_rows(r->p, r->b);
    r->n = problem_key_rows(r->p, r->b);
    for (uint32_t i = 0; i < queries; i++) {
        if (r->p->sample && !r->p->sample[i])
            continue;
        forward(r, i);
        if (with_backward)
            backward(r, i);
    }
}

void reference_run(const struct problem *p, struct problem_data *d, bool with_backward)
{
    make_outputs(p, d, with_backward);
    struct row r = {.p = p, .d = d};
    const uint64_t keys = problem_keys(p);
    r.active = memory_new(keys, 1);
    double *rows = memory_new(keys * 5, sizeof *rows);
    r.score = rows;
    r.prob = rows + keys;
    r.keep = rows + 2 * keys;
    r.dprob = rows + 3 * keys;
    r.sorted = rows + 4 * keys;
    for (r.b = 0; r.b < p->batch; r.b++)
        for (r.h = 0; r.h < p->mask->heads; r.h++)
            run_head(&r, with_backward);
    if (with_backward)
        d->d_x_parts = sqrt(d->d_x_parts);
    if (p->bias && with_backward)
        problem_sum_diagonals(p, d);
    free(rows);
    free(r.active);
}
