/* SPDX-License-Identifier: Apache-2.0 */
#include "model/checkpoint/sentence_dense.h"
#include "masks/base/file.h"
#include "masks/base/memory.h"
#include "masks/safetensors.h"
#include "model/base/element.h"
#include "model/checkpoint/json.h"
#include "model/checkpoint/sentence_modules.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* ---- config.json ---- */

/* Classes of torch.nn, whose objects have no settings. */
static const struct {
    const char *name;
    enum dense_activation activation;
} activations[] = {
    {"Identity", DENSE_IDENTITY}, {"Tanh", DENSE_TANH},       {"ReLU", DENSE_RELU},
    {"GELU", DENSE_GELU},         {"Sigmoid", DENSE_SIGMOID},
};

/* "torch.nn.modules.activation.Tanh"; null: Tanh. */
static int take_activation(const char *path, struct sentence_dense *d, struct error *e)
{
    static const char library[] = "torch.nn.";
    const char *name = path ? strrchr(path, '.') : ".Tanh";
    for (size_t k = 0; k < COUNT(activations) && name; k++)
        if (!strcmp(activations[k].name, name + 1) &&
            (!path || !strncmp(path, library, sizeof library - 1))) {
            d->activation = activations[k].activation;
            return 0;
        }
    return error_set(e, ERROR_INPUT,
                     "activation_function '%.80s' is not supported: Identity, Tanh, ReLU, GELU "
                     "and Sigmoid of torch.nn are",
                     path);
}

struct flags {
    bool bias, residual;
};

static int take_config(const json_t *config, struct sentence_dense *d, struct flags *f,
                       struct error *e)
{
    const char *activation = NULL;
    if (json_take_u32(config, "in_features", &d->in, e) < 0 ||
        json_take_u32(config, "out_features", &d->out, e) < 0 ||
        json_take_bool(config, "bias", &f->bias, e) < 0 ||
        json_take_bool(config, "use_residual", &f->residual, e) < 0 ||
        json_take_text(config, "activation_function", &activation, e) < 0 ||
        sentence_names_check(config, e) < 0 || take_activation(activation, d, e) < 0)
        return -1;
    if (!d->in || !d->out)
        return error_set(e, ERROR_INPUT, "in_features %u, out_features %u: both are expected",
                         d->in, d->out);
    return 0;
}

/* ---- model.safetensors ---- */

static bool has_shape(const struct safetensor *t, uint32_t out, uint32_t in)
{
    return t->shape[0] == out && (in ? t->rank == 2 && t->shape[1] == in : t->rank == 1);
}

/* [out, in], or [out] if `in` is 0. The caller frees. Null with *e set. */
static float *take_tensor(const struct safetensors *s, const char *name, uint32_t out,
                          uint32_t in, struct error *e)
{
    const struct safetensor *t = safetensors_find(s, name);
    enum element type;
    if (!t || !element_parse(t->dtype, &type) || !has_shape(t, out, in)) {
        error_set(e, ERROR_INPUT, "tensor '%s': numbers [%u%s%.0u] are expected", name, out,
                  in ? ", " : "", in);
        return NULL;
    }
    const uint64_t count = (uint64_t)out * (in ? in : 1);
    if (elements_not_finite(type, t->data, count) < count) {
        error_set(e, ERROR_INPUT, "tensor '%s' has NaN or infinity", name);
        return NULL;
    }
    float *ret = memory_new(count, sizeof *ret);
    elements_to_f32(type, t->data, count, ret);
    return ret;
}

static int take_tensors(const struct safetensors *s, const struct flags *f,
                        struct sentence_dense *d, struct error *e)
{
    d->adds_input = f->residual && d->in == d->out;
    d->weight = take_tensor(s, "linear.weight", d->out, d->in, e);
    if (!d->weight)
        return -1;
    if (f->bias && !(d->bias = take_tensor(s, "linear.bias", d->out, 0, e)))
        return -1;
    if (f->residual && !d->adds_input &&
        !(d->residual = take_tensor(s, "residual.weight", d->out, d->in, e)))
        return -1;
    return 0;
}

struct sentence_dense *sentence_dense_parse(const json_t *config, const uint8_t *tensors,
                                            uint64_t size, const char *path, struct error *e)
{
    struct sentence_dense *d = memory_new(1, sizeof *d);
    struct safetensors s = {0};
    struct flags f = {.bias = true};
    int r = take_config(config, d, &f, e);
    if (r == 0)
        r = safetensors_parse_any(tensors, size, path, &s, e);
    if (r == 0 && take_tensors(&s, &f, d, e) < 0)
        r = error_prefix(e, "%s", path);
    safetensors_finish(&s);
    if (r == 0)
        return d;
    sentence_dense_destroy(d);
    return NULL;
}

struct sentence_dense *sentence_dense_read(const char *folder, struct error *e)
{
    static const char name[] = "model.safetensors";
    struct file f = {0};
    struct sentence_dense *ret = NULL;
    json_t *config = json_read(folder, "config.json", e);
    char *path = path_join(folder, name);
    if (config && !path_exists(folder, name) && path_exists(folder, "pytorch_model.bin"))
        error_set(e, ERROR_INPUT,
                  "%s is missing: pytorch_model.bin is pickle, which is never read; "
                  "SentenceTransformer(FOLDER).save(NEW) writes safetensors",
                  path);
    else if (config && file_open(path, &f, e) == 0)
        ret = sentence_dense_parse(config, f.bytes, f.size, path, e);
    if (config && !ret && strncmp(e->text, folder, strlen(folder)) != 0)
        error_prefix(e, "%s/config.json", folder);
    file_close(&f);
    json_decref(config);
    free(path);
    return ret;
}

void sentence_dense_destroy(struct sentence_dense *d)
{
    if (!d)
        return;
    free(d->weight);
    free(d->bias);
    free(d->residual);
    free(d);
}

/* ---- the product ---- */

enum { LANES = 16 };

static float dot(const float *a, const float *b, uint32_t n)
{
    float lane[LANES] = {0}, sum = 0;
    uint32_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (uint32_t i = 0; i < LANES; i++)
            lane[i] += a[k + i] * b[k + i];
    for (; k < n; k++)
        lane[0] += a[k] * b[k];
    for (uint32_t i = 0; i < LANES; i++)
        sum += lane[i];
    return sum;
}

static float activate(enum dense_activation a, float x)
{
    switch (a) {
    case DENSE_TANH:
        return tanhf(x);
    case DENSE_RELU:
        return x > 0 ? x : 0;
    case DENSE_GELU:
        return 0.5f * x * (1 + erff(x * 0.70710678f));
    case DENSE_SIGMOID:
        return 1 / (1 + expf(-x));
    case DENSE_IDENTITY:
        break;
    }
    return x;
}

void sentence_dense_run(const struct sentence_dense *d, const float *x, float *y)
{
    for (uint32_t k = 0; k < d->out; k++) {
        const size_t row = (size_t)k * d->in;
        float sum = dot(d->weight + row, x, d->in) + (d->bias ? d->bias[k] : 0);
        y[k] = activate(d->activation, sum);
        if (d->adds_input)
            y[k] += x[k];
        if (d->residual)
            y[k] += dot(d->residual + row, x, d->in);
    }
}
