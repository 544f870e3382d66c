/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model/plain_bert.h"
#include "masks/base/memory.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A tensor in f32, by a name that is put together; caller frees. */
static float *read_tensor(const struct plain_bert *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static float *read_tensor(const struct plain_bert *b, const char *format, ...)
{
    char name[PARAMETER_NAME_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    const struct tensor *t = weights_find(b->weights, name);
    float *ret = memory_new(t->parameter.count, sizeof *ret);
    tensor_to_f32(t, 0, t->parameter.count, ret);
    return ret;
}

/* y = x W^T + b; caller frees. */
static double *dense(const struct plain_bert *b, const char *prefix, const double *x,
                     uint32_t rows, uint32_t in, uint32_t out)
{
    float *w = read_tensor(b, "%s.weight", prefix), *bias = read_tensor(b, "%s.bias", prefix);
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

static void norm(const struct plain_bert *b, const char *prefix, double *x, uint32_t rows)
{
    uint32_t h = b->config->hidden;
    float *gain = read_tensor(b, "%s.weight", prefix),
          *shift = read_tensor(b, "%s.bias", prefix);
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

static void activate(const struct plain_bert *b, double *x, size_t count)
{
    for (size_t k = 0; k < count; k++)
        switch (b->config->activation) {
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

static double *attend(const struct plain_bert *b, uint32_t layer, const double *x, uint32_t n)
{
    static const char *const names[] = {"query", "key", "value"};
    uint32_t h = b->config->hidden, dim = h / b->config->heads;
    double *part[3], *z = memory_new(n, sizeof *z),
                     *out = memory_new((size_t)n * h, sizeof *out);
    char prefix[PARAMETER_NAME_BYTES];
    for (int k = 0; k < 3; k++) {
        snprintf(prefix, sizeof prefix, "encoder.layer.%u.attention.self.%s", layer, names[k]);
        part[k] = dense(b, prefix, x, n, h, h);
    }
    for (uint32_t head = 0; head < b->config->heads; head++)
        for (uint32_t i = 0; i < n; i++) {
            const double *q = part[0] + (size_t)i * h + (size_t)head * dim;
            for (uint32_t j = 0; j < n; j++) {
                const double *k = part[1] + (size_t)j * h + (size_t)head * dim;
                z[j] = sees(b, layer, head, i, j) ? 0 : -HUGE_VAL;
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
    return out;
}

static void add(double *x, double *more, size_t count)
{
    for (size_t k = 0; k < count; k++)
        x[k] += more[k];
    free(more);
}

static void run_layer(const struct plain_bert *b, uint32_t layer, double *x, uint32_t n)
{
    uint32_t h = b->config->hidden, inner = b->config->intermediate;
    char prefix[PARAMETER_NAME_BYTES];
    double *context = attend(b, layer, x, n);
    snprintf(prefix, sizeof prefix, "encoder.layer.%u.attention.output.dense", layer);
    add(x, dense(b, prefix, context, n, h, h), (size_t)n * h);
    free(context);
    snprintf(prefix, sizeof prefix, "encoder.layer.%u.attention.output.LayerNorm", layer);
    norm(b, prefix, x, n);
    snprintf(prefix, sizeof prefix, "encoder.layer.%u.intermediate.dense", layer);
    double *between = dense(b, prefix, x, n, h, inner);
    activate(b, between, (size_t)n * inner);
    snprintf(prefix, sizeof prefix, "encoder.layer.%u.output.dense", layer);
    add(x, dense(b, prefix, between, n, inner, h), (size_t)n * h);
    free(between);
    snprintf(prefix, sizeof prefix, "encoder.layer.%u.output.LayerNorm", layer);
    norm(b, prefix, x, n);
}

double *plain_hidden(const struct plain_bert *b, const struct sequence *s)
{
    uint32_t h = b->config->hidden;
    float *word = read_tensor(b, "embeddings.word_embeddings.weight");
    float *position = read_tensor(b, "embeddings.position_embeddings.weight");
    float *type = read_tensor(b, "embeddings.token_type_embeddings.weight");
    double *x = memory_new((size_t)s->count * h, sizeof *x);
    for (uint32_t i = 0; i < s->count; i++)
        for (uint32_t k = 0; k < h; k++)
            x[i * h + k] = (double)word[s->token_ids[i] * h + k] + (double)position[i * h + k] +
                           (double)type[(i < s->first_part ? 0 : h) + k];
    free(word);
    free(position);
    free(type);
    norm(b, "embeddings.LayerNorm", x, s->count);
    for (uint32_t k = 0; k < b->config->layers; k++)
        run_layer(b, k, x, s->count);
    return x;
}

double *plain_pooled(const struct plain_bert *b, const double *x)
{
    uint32_t h = b->config->hidden;
    double *y = dense(b, "pooler.dense", x, 1, h, h);
    for (uint32_t k = 0; k < h; k++)
        y[k] = tanh(y[k]);
    return y;
}

double *plain_words(const struct plain_bert *b, const double *x)
{
    uint32_t h = b->config->hidden, words = b->config->vocabulary;
    double *y = dense(b, "cls.predictions.transform.dense", x, 1, h, h);
    double *logit = memory_new(words, sizeof *logit);
    float *word = read_tensor(b, "embeddings.word_embeddings.weight");
    float *bias = read_tensor(b, "cls.predictions.bias");
    activate(b, y, h);
    norm(b, "cls.predictions.transform.LayerNorm", y, 1);
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
