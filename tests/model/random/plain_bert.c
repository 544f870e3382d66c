/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model/random/plain_bert.h"
#include "masks/base/memory.h"
#include "model/arch/arch.h"
#include "model/backend/training.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

float *plain_tensor(const struct plain_bert *b, enum parameter_id id, uint32_t layer)
{
    const struct tensor *t = weights_get(b->weights, id, layer);
    const struct training_device *d = b->device;
    const uint64_t count = t->parameter.count;
    float *ret = memory_new(count, sizeof *ret);
    if (!t->on_device)
        tensor_to_f32(t, 0, count, ret);
    else if (d->does->array_read(d->state, t->data, count, ret, NULL) < 0)
        abort();
    return ret;
}

static float *tensor_or_zeros(const struct plain_bert *b, enum parameter_id id, uint32_t layer,
                              uint64_t count)
{
    return weights_get(b->weights, id, layer) ? plain_tensor(b, id, layer)
                                              : memory_new(count, sizeof(float));
}

/* y = x W^T + b; caller frees. A weight's bias is the next parameter, a gain's shift too. */
static double *dense(const struct plain_bert *b, enum parameter_id weight, uint32_t layer,
                     const double *x, uint32_t rows)
{
    const uint64_t *shape = weights_get(b->weights, weight, layer)->parameter.shape;
    const uint32_t out = (uint32_t)shape[0], in = (uint32_t)shape[1];
    float *w = plain_tensor(b, weight, layer),
          *bias = tensor_or_zeros(b, weight + 1, layer, out);
    double *y = memory_new((size_t)rows * out, sizeof *y);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t k = 0; k < out; k++) {
            double sum = (double)bias[k];
            for (uint32_t i = 0; i < in; i++)
                sum += x[r * in + i] * (double)w[k * in + i];
            y[r * out + k] = sum;
        }
    free(w);
    free(bias);
    return y;
}

static void norm(const struct plain_bert *b, enum parameter_id id, uint32_t layer, double *x,
                 uint32_t rows)
{
    uint32_t h = b->config->hidden;
    if (!weights_get(b->weights, id, layer)) /* the first layer's, of a ModernBERT */
        return;
    float *gain = plain_tensor(b, id, layer), *shift = tensor_or_zeros(b, id + 1, layer, h);
    for (uint32_t r = 0; r < rows; r++, x += h) {
        double mean = 0, variance = 0;
        for (uint32_t k = 0; k < h; k++)
            mean += x[k] / h;
        for (uint32_t k = 0; k < h; k++)
            variance += (x[k] - mean) * (x[k] - mean) / h;
        for (uint32_t k = 0; k < h; k++)
            x[k] =
                (x[k] - mean) / sqrt(variance + b->config->layer_norm_eps) * (double)gain[k] +
                (double)shift[k];
    }
    free(gain);
    free(shift);
}

static void activate(enum activation a, double *x, size_t count)
{
    for (size_t k = 0; k < count; k++)
        switch (a) {
        case ACTIVATION_GELU:
            x[k] = x[k] / 2 * (1 + erf(x[k] / sqrt(2)));
            break;
        case ACTIVATION_GELU_TANH:
            x[k] =
                x[k] / 2 * (1 + tanh(sqrt(2 / M_PI) * (x[k] + 0.044715 * x[k] * x[k] * x[k])));
            break;
        case ACTIVATION_RELU:
            x[k] = fmax(x[k], 0);
            break;
        default:
            x[k] = x[k] / (1 + exp(-x[k]));
        }
}

/* Over the scores of active keys; the others are -infinity and stay out. */
static void make_probabilities(const struct plain_bert *b, double *z, uint32_t n)
{
    double most = -HUGE_VAL, sum = 0;
    for (uint32_t j = 0; j < n; j++)
        most = fmax(most, z[j]);
    if (isinf(most)) {
        for (uint32_t j = 0; j < n; j++)
            z[j] = 0;
        return;
    }
    if (b->sparsegen) { /* bisection for the tau of sum relu((z - tau) / (1 - lambda)) = 1 */
        double low = most - (1 - b->lambda), high = most;
        for (int k = 0; k < 200; k++) {
            double tau = (low + high) / 2;
            sum = 0;
            for (uint32_t j = 0; j < n; j++)
                sum += fmax((z[j] - tau) / (1 - b->lambda), 0);
            *(sum > 1 ? &low : &high) = tau;
        }
        for (uint32_t j = 0; j < n; j++)
            z[j] = fmax((z[j] - low) / (1 - b->lambda), 0);
        return;
    }
    for (uint32_t j = 0; j < n; j++)
        sum += exp(z[j] - most);
    for (uint32_t j = 0; j < n; j++)
        z[j] = exp(z[j] - most) / sum;
}

static bool sees(const struct plain_bert *b, uint32_t layer, uint32_t head, uint32_t i,
                 uint32_t j)
{
    const struct mask *m = b->mask;
    if (!m)
        return true;
    const struct pattern *p =
        mask_pattern(m, m->layers == 1 ? 0 : layer, m->heads == 1 ? 0 : head);
    for (uint64_t r = p->row[i]; r < p->row[i + 1]; r++)
        if (j >= p->run[r].begin && j < p->run[r].end)
            return true;
    return false;
}

/* T5's buckets, 32 of them, up to distance 128. */
static double bias_of(const struct plain_bert *b, const float *table, uint32_t head, int offset)
{
    const int distance = abs(offset);
    const double far = table ? 8 + floor(8 * log(distance / 8.0) / log(16.0) + 1e-9) : 0;
    const int bucket = (offset > 0 ? 16 : 0) + (distance < 8 ? distance
                                                : far < 15   ? (int)far
                                                             : 15);
    return table ? (double)table[(uint32_t)bucket * b->config->heads + head] : 0;
}

/* Query, key and value, out of one tensor or three. */
static void project(const struct plain_bert *b, uint32_t layer, const double *x, uint32_t n,
                    double *part[3])
{
    const uint32_t h = b->config->hidden;
    if (!weights_get(b->weights, PARAMETER_QKV_WEIGHT, layer)) {
        for (int k = 0; k < 3; k++)
            part[k] = dense(b, PARAMETER_QUERY_WEIGHT + 2 * k, layer, x, n);
        return;
    }
    double *all = dense(b, PARAMETER_QKV_WEIGHT, layer, x, n);
    for (uint32_t k = 0; k < 3; k++) {
        part[k] = memory_new((size_t)n * h, sizeof **part);
        for (uint32_t i = 0; i < n; i++)
            memcpy(part[k] + (size_t)i * h, all + ((size_t)i * 3 + k) * h, h * sizeof *all);
    }
    free(all);
}

/* Each pair of a head's halves turns by position / theta^(2k / dim). */
static void rotate(const struct plain_bert *b, uint32_t layer, double *x, uint32_t n)
{
    const struct model_config *c = b->config;
    const uint32_t h = c->hidden, dim = h / c->heads, half = dim / 2;
    const double theta = config_layer_is_global(c, layer) ? c->global_theta : c->local_theta;
    for (size_t at = 0; c->local && at < (size_t)n * h; at++) {
        const uint32_t k = (uint32_t)(at % h % dim);
        if (k >= half)
            continue;
        const double angle = (double)(at / h) / pow(theta, 2.0 * k / dim), first = x[at],
                     second = x[at + half];
        x[at] = first * cos(angle) - second * sin(angle);
        x[at + half] = second * cos(angle) + first * sin(angle);
    }
}

static double *attend(const struct plain_bert *b, uint32_t layer, const double *x, uint32_t n)
{
    uint32_t h = b->config->hidden, dim = h / b->config->heads;
    double *part[3], *z = memory_new(n, sizeof *z),
                     *out = memory_new((size_t)n * h, sizeof *out);
    float *table = b->config->relative ? plain_tensor(b, PARAMETER_RELATIVE, 0) : NULL;
    project(b, layer, x, n, part);
    rotate(b, layer, part[0], n);
    rotate(b, layer, part[1], n);
    for (uint32_t head = 0; head < b->config->heads; head++)
        for (uint32_t i = 0; i < n; i++) {
            const double *q = part[0] + (size_t)i * h + (size_t)head * dim;
            for (uint32_t j = 0; j < n; j++) {
                const double *k = part[1] + (size_t)j * h + (size_t)head * dim;
                z[j] = sees(b, layer, head, i, j) ? bias_of(b, table, head, (int)j - (int)i)
                                                  : -HUGE_VAL;
                for (uint32_t d = 0; d < dim; d++)
                    z[j] += q[d] * k[d] / sqrt(dim);
            }
            make_probabilities(b, z, n);
            for (uint32_t j = 0; j < n; j++)
                for (uint32_t d = 0; d < dim; d++)
                    out[(size_t)i * h + (size_t)head * dim + d] +=
                        z[j] * part[2][(size_t)j * h + (size_t)head * dim + d];
        }
    for (int k = 0; k < 3; k++)
        free(part[k]);
    free(z);
    free(table);
    return out;
}

static void add(double *x, double *more, size_t count)
{
    for (size_t k = 0; k < count; k++)
        x[k] += more[k];
    free(more);
}

/* The block's input: x, or its norm where that comes first. Caller frees. */
static double *enter(const struct plain_bert *b, enum block_kind kind, enum parameter_id gain,
                     uint32_t layer, const double *x, uint32_t n)
{
    double *y = memory_copy(x, (size_t)n * b->config->hidden * sizeof *x);
    if (arch_norm_of(b->config->arch, kind) == NORM_BEFORE)
        norm(b, gain, layer, y, n);
    return y;
}

static void leave(const struct plain_bert *b, enum block_kind kind, enum parameter_id gain,
                  uint32_t layer, double *x, uint32_t n)
{
    if (arch_norm_of(b->config->arch, kind) == NORM_AFTER)
        norm(b, gain, layer, x, n);
}

/* activation(first half) * second half; frees x [n, 2 I]. */
static double *gated(const struct plain_bert *b, double *x, uint32_t n)
{
    const size_t inner = b->config->intermediate;
    double *y = memory_new(n * inner, sizeof *y);
    for (size_t at = 0; at < n * inner; at++) {
        const double *row = x + at / inner * 2 * inner;
        y[at] = row[at % inner];
        activate(b->config->activation, y + at, 1);
        y[at] *= row[inner + at % inner];
    }
    free(x);
    return y;
}

static void run_layer(const struct plain_bert *b, uint32_t layer, double *x, uint32_t n)
{
    const uint32_t h = b->config->hidden, inner = b->config->intermediate;
    double *y = enter(b, BLOCK_ATTENTION, PARAMETER_OUTPUT_GAIN, layer, x, n);
    double *context = attend(b, layer, y, n);
    free(y);
    add(x, dense(b, PARAMETER_OUTPUT_WEIGHT, layer, context, n), (size_t)n * h);
    free(context);
    leave(b, BLOCK_ATTENTION, PARAMETER_OUTPUT_GAIN, layer, x, n);
    y = enter(b, BLOCK_FEED, PARAMETER_OUTER_GAIN, layer, x, n);
    double *between = dense(b, PARAMETER_INNER_WEIGHT, layer, y, n);
    free(y);
    if (b->config->arch->gated)
        between = gated(b, between, n);
    else
        activate(b->config->activation, between, (size_t)n * inner);
    add(x, dense(b, PARAMETER_OUTER_WEIGHT, layer, between, n), (size_t)n * h);
    free(between);
    leave(b, BLOCK_FEED, PARAMETER_OUTER_GAIN, layer, x, n);
}

/* Where padding has a position of its own, tokens are counted from behind it, those of padding not. */
static uint32_t position_of(const struct model_config *c, const struct sequence *s, uint32_t i)
{
    uint32_t at = c->pad;
    if (!c->arch->positions_skip_pad)
        return i;
    for (uint32_t k = 0; k <= i; k++)
        at += s->token_ids[k] != c->pad;
    return s->token_ids[i] == c->pad ? c->pad : at;
}

double *plain_hidden(const struct plain_bert *b, const struct sequence *s)
{
    uint32_t h = b->config->hidden;
    float *word = plain_tensor(b, PARAMETER_WORDS, 0);
    float *position =
        tensor_or_zeros(b, PARAMETER_POSITIONS, 0,
                        ((uint64_t)b->config->first_position + b->config->positions) * h);
    float *type = b->config->types ? plain_tensor(b, PARAMETER_TYPES, 0) : NULL;
    double *x = memory_new((size_t)s->count * h, sizeof *x);
    for (uint32_t i = 0; i < s->count; i++) {
        const uint32_t at = position_of(b->config, s, i);
        const bool second = i >= s->first_part && !b->config->one_type;
        for (uint32_t k = 0; k < h; k++)
            x[i * h + k] = (double)word[s->token_ids[i] * h + k] +
                           (double)position[at * h + k] +
                           (type ? (double)type[(second ? h : 0) + k] : 0);
    }
    free(word);
    free(position);
    free(type);
    norm(b, PARAMETER_EMBEDDINGS_GAIN, 0, x, s->count);
    for (uint32_t k = 0; k < b->config->layers; k++)
        run_layer(b, k, x, s->count);
    if (arch_parameter(b->config->arch, PARAMETER_FINAL_GAIN))
        norm(b, PARAMETER_FINAL_GAIN, 0, x, s->count);
    return x;
}

static double *plain_shared(const struct plain_bert *b, const double *x)
{
    double *y = dense(b, PARAMETER_MLM_DENSE_WEIGHT, 0, x, 1);
    activate(b->config->head_activation, y, b->config->hidden);
    norm(b, PARAMETER_MLM_GAIN, 0, y, 1);
    return y;
}

double *plain_pooled(const struct plain_bert *b, const double *x)
{
    uint32_t h = b->config->hidden;
    if (arch_pooler(b->config) == POOLER_SHARED)
        return plain_shared(b, x);
    double *y = dense(b, PARAMETER_POOLER_WEIGHT, 0, x, 1);
    const bool relu = arch_pooler(b->config) == POOLER_OF_CLASSIFIER;
    for (uint32_t k = 0; k < h; k++)
        y[k] = relu ? fmax(y[k], 0) : tanh(y[k]);
    return y;
}

double *plain_words(const struct plain_bert *b, const double *x)
{
    uint32_t h = b->config->hidden, words = b->config->vocabulary;
    double *y = plain_shared(b, x);
    double *logit = memory_new(words, sizeof *logit);
    float *word = plain_tensor(b, PARAMETER_WORDS, 0);
    float *bias = tensor_or_zeros(b, PARAMETER_MLM_BIAS, 0, words);
    for (uint32_t k = 0; k < words; k++) {
        logit[k] = (double)bias[k];
        for (uint32_t i = 0; i < h; i++)
            logit[k] += y[i] * (double)word[k * h + i];
    }
    free(word);
    free(bias);
    free(y);
    return logit;
}
