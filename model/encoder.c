/* SPDX-License-Identifier: Apache-2.0 */
/* From the tensors of the files to what the engine runs on: query, key and value are one matrix, and
   heads that the attention kernels do not take are padded with rows (of query, key, value) and columns
   (of the output) of zeros, which cost no code later. */
#include "model/encoder.h"
#include "masks/base/memory.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the functions below share. */
struct build {
    struct engine *g;
    struct encoder *c;
    struct error *e;
    float *weight, *bias; /* room for the largest matrix */
};

static const struct tensor *tensor_of(const struct build *b, const char *name)
{
    return weights_find(&b->g->weights, name);
}

/* All of a tensor to f32. */
static void read_all(const struct build *b, const char *name, float *ret)
{
    const struct tensor *t = tensor_of(b, name);
    tensor_to_f32(t, 0, t->parameter.count, ret);
}

static int read_norm(const struct build *b, const char *prefix, struct norm *ret)
{
    char name[PARAMETER_NAME_BYTES];
    uint32_t size = b->g->config.hidden;
    *ret =
        (struct norm){size, (float)b->g->config.layer_norm_eps,
                      memory_aligned(size, sizeof(float)), memory_aligned(size, sizeof(float))};
    snprintf(name, sizeof name, "%s.weight", prefix);
    read_all(b, name, ret->gain);
    snprintf(name, sizeof name, "%s.bias", prefix);
    read_all(b, name, ret->shift);
    return b->c->backend ? backend_norm(b->c->backend, ret, b->e) : 0;
}

static void norm_finish(struct norm *n)
{
    free(n->gain);
    free(n->shift);
}

/* ---- linear layers ---- */

static int pack(const struct build *b, uint32_t in, uint32_t out, enum element y,
                enum after after, struct linear *ret)
{
    struct linear_shape shape = {in, out, b->g->dtype, y, after};
    return b->c->backend ? backend_linear(b->c->backend, &shape, b->weight, b->bias, ret, b->e)
                         : linear_pack(b->c->matmul, &shape, b->weight, b->bias, ret, b->e);
}

static int pack_plain(const struct build *b, const char *prefix, enum element y,
                      enum after after, struct linear *ret)
{
    char name[PARAMETER_NAME_BYTES];
    snprintf(name, sizeof name, "%s.weight", prefix);
    const struct tensor *t = tensor_of(b, name);
    tensor_to_f32(t, 0, t->parameter.count, b->weight);
    snprintf(name, sizeof name, "%s.bias", prefix);
    read_all(b, name, b->bias);
    return pack(b, (uint32_t)t->parameter.shape[1], (uint32_t)t->parameter.shape[0], y, after,
                ret);
}

/* Head h's rows go to row h * padded of part k. */
static int pack_projection(const struct build *b, uint32_t layer, struct linear *ret)
{
    static const char *const parts[] = {"query", "key", "value"};
    const struct model_config *m = &b->g->config;
    uint32_t dim = m->hidden / m->heads, padded = attention_padded_dim(dim);
    uint32_t columns = attention_columns(m);
    char name[PARAMETER_NAME_BYTES];
    memset(b->weight, 0, (size_t)3 * columns * m->hidden * sizeof(float));
    memset(b->bias, 0, (size_t)3 * columns * sizeof(float));
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t h = 0; h < m->heads; h++) {
            uint64_t to = (uint64_t)k * columns + (uint64_t)h * padded,
                     from = (uint64_t)h * dim;
            snprintf(name, sizeof name, "encoder.layer.%u.attention.self.%s.weight", layer,
                     parts[k]);
            tensor_to_f32(tensor_of(b, name), from * m->hidden, (uint64_t)dim * m->hidden,
                          b->weight + to * m->hidden);
            snprintf(name, sizeof name, "encoder.layer.%u.attention.self.%s.bias", layer,
                     parts[k]);
            tensor_to_f32(tensor_of(b, name), from, dim, b->bias + to);
        }
    return pack(b, m->hidden, 3 * columns, b->g->dtype, AFTER_NONE, ret);
}

/* Head h's columns go to column h * padded. */
static int pack_output(const struct build *b, uint32_t layer, struct linear *ret)
{
    const struct model_config *m = &b->g->config;
    uint32_t dim = m->hidden / m->heads, padded = attention_padded_dim(dim);
    uint32_t columns = attention_columns(m);
    char name[PARAMETER_NAME_BYTES];
    snprintf(name, sizeof name, "encoder.layer.%u.attention.output.dense.weight", layer);
    const struct tensor *t = tensor_of(b, name);
    memset(b->weight, 0, (size_t)columns * m->hidden * sizeof(float));
    for (uint32_t row = 0; row < m->hidden; row++)
        for (uint32_t h = 0; h < m->heads; h++)
            tensor_to_f32(t, (uint64_t)row * m->hidden + (uint64_t)h * dim, dim,
                          b->weight + (uint64_t)row * columns + (uint64_t)h * padded);
    snprintf(name, sizeof name, "encoder.layer.%u.attention.output.dense.bias", layer);
    read_all(b, name, b->bias);
    return pack(b, columns, m->hidden, ELEMENT_F32, AFTER_NONE, ret);
}

static enum after activation_of(const struct model_config *m)
{
    static const enum after afters[ACTIVATION_COUNT] = {
        [ACTIVATION_GELU] = AFTER_GELU,
        [ACTIVATION_GELU_TANH] = AFTER_GELU_TANH,
        [ACTIVATION_RELU] = AFTER_RELU,
        [ACTIVATION_SILU] = AFTER_SILU,
    };
    return afters[m->activation];
}

/* Slices are whole vectors of the products' library. */
static uint32_t slices_of(const struct engine *g)
{
    enum { WIDTH = 64 };
    uint32_t slices = FEED_SLICES;
    if (g->encoder->backend)
        return 1;
    while (slices > 1 && g->config.intermediate % (slices * WIDTH))
        slices--;
    return slices;
}

static int pack_feed(const struct build *b, uint32_t layer, struct layer *l)
{
    const struct model_config *m = &b->g->config;
    const struct encoder *c = b->c;
    uint32_t width = m->intermediate / c->slices;
    struct build part = *b;
    char name[PARAMETER_NAME_BYTES];
    snprintf(name, sizeof name, "encoder.layer.%u.intermediate.dense.weight", layer);
    read_all(b, name, b->weight);
    snprintf(name, sizeof name, "encoder.layer.%u.intermediate.dense.bias", layer);
    read_all(b, name, b->bias);
    for (uint32_t k = 0; k < c->slices; k++) {
        part.weight = b->weight + (size_t)k * width * m->hidden;
        part.bias = b->bias + k * width;
        if (pack(&part, m->hidden, width, c->own_gelu ? ELEMENT_F32 : b->g->dtype,
                 c->own_gelu ? AFTER_NONE : activation_of(m), &l->inner[k]) < 0)
            return -1;
    }
    snprintf(name, sizeof name, "encoder.layer.%u.output.dense.bias", layer);
    read_all(b, name, b->bias);
    snprintf(name, sizeof name, "encoder.layer.%u.output.dense.weight", layer);
    const struct tensor *t = tensor_of(b, name);
    for (uint32_t k = 0; k < c->slices; k++) {
        for (uint32_t row = 0; row < m->hidden; row++)
            tensor_to_f32(t, (uint64_t)row * m->intermediate + (uint64_t)k * width, width,
                          b->weight + (size_t)row * width);
        if (pack(b, width, m->hidden, ELEMENT_F32, AFTER_NONE, &l->outer[k]) < 0)
            return -1;
        memset(b->bias, 0, m->hidden * sizeof *b->bias);
    }
    return 0;
}

static int build_layer(const struct build *b, uint32_t k)
{
    struct layer *l = &b->c->layer[k];
    char name[PARAMETER_NAME_BYTES];
    if (pack_projection(b, k, &l->projection) < 0 || pack_output(b, k, &l->output) < 0 ||
        pack_feed(b, k, l) < 0)
        return -1;
    snprintf(name, sizeof name, "encoder.layer.%u.attention.output.LayerNorm", k);
    if (read_norm(b, name, &l->output_norm) < 0)
        return -1;
    snprintf(name, sizeof name, "encoder.layer.%u.output.LayerNorm", k);
    return read_norm(b, name, &l->outer_norm);
}

/* ---- heads ---- */

/* The decoder's weights are the word embeddings unless it has its own. */
static int pack_words(const struct build *b)
{
    const struct model_config *m = &b->g->config;
    const struct tensor *t = tensor_of(b, "cls.predictions.decoder.weight");
    const char *transform = "cls.predictions.transform.dense";
    if (pack_plain(b, transform, ELEMENT_F32, activation_of(m), &b->c->words_dense) < 0 ||
        read_norm(b, "cls.predictions.transform.LayerNorm", &b->c->words_norm) < 0)
        return -1;
    tensor_to_f32(t ? t : b->c->words, 0, (uint64_t)m->vocabulary * m->hidden, b->weight);
    read_all(b, "cls.predictions.bias", b->bias);
    return pack(b, m->hidden, m->vocabulary, ELEMENT_F32, AFTER_NONE, &b->c->words_out);
}

static int build_heads(const struct build *b)
{
    uint32_t parts = b->g->parts;
    struct encoder *c = b->c;
    enum element own = b->g->dtype;
    if ((parts & PART_POOLER &&
         pack_plain(b, "pooler.dense", own, AFTER_TANH, &c->pooler) < 0) ||
        (parts & PART_MLM && pack_words(b) < 0) ||
        (parts & PART_NSP &&
         pack_plain(b, "cls.seq_relationship", ELEMENT_F32, AFTER_NONE, &c->next) < 0) ||
        (parts & PART_CLASSIFIER &&
         pack_plain(b, "classifier", ELEMENT_F32, AFTER_NONE, &c->classifier) < 0) ||
        (parts & PART_SPAN &&
         pack_plain(b, "qa_outputs", ELEMENT_F32, AFTER_NONE, &c->span) < 0))
        return -1;
    return 0;
}

/* ---- all ---- */

/* The tables move to the device; the host keeps none. */
static int move_embeddings(const struct build *b)
{
    const struct model_config *m = &b->g->config;
    struct encoder *c = b->c;
    struct backend *to = c->backend;
    const uint64_t words = (uint64_t)m->vocabulary * m->hidden;
    const enum element dtype = b->g->dtype;
    float *positions = c->positions, *types = c->types;
    tensor_to_f32(c->words, 0, words, b->weight);
    void *own = memory_new(words, element_bytes(dtype));
    elements_from_f32(dtype, b->weight, words, own);
    c->device_words = backend_keep(to, own, words * element_bytes(dtype), b->e);
    free(own);
    c->positions =
        backend_keep(to, positions, (uint64_t)m->positions * m->hidden * sizeof(float), b->e);
    c->types = backend_keep(to, types, (uint64_t)m->types * m->hidden * sizeof(float), b->e);
    free(positions);
    free(types);
    return c->device_words && c->positions && c->types ? 0 : -1;
}

static int build_embeddings(const struct build *b)
{
    const struct model_config *m = &b->g->config;
    b->c->words = tensor_of(b, "embeddings.word_embeddings.weight");
    b->c->positions = memory_aligned((size_t)m->positions * m->hidden, sizeof(float));
    b->c->types = memory_aligned((size_t)m->types * m->hidden, sizeof(float));
    read_all(b, "embeddings.position_embeddings.weight", b->c->positions);
    read_all(b, "embeddings.token_type_embeddings.weight", b->c->types);
    if (b->c->backend && move_embeddings(b) < 0)
        return -1;
    return read_norm(b, "embeddings.LayerNorm", &b->c->embeddings_norm);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Elements of the largest matrix, and of the longest bias. */
static uint64_t largest(const struct engine *g, uint64_t *ret_bias)
{
    const struct model_config *m = &g->config;
    uint64_t outs =
        larger(larger((uint64_t)3 * attention_columns(m), m->intermediate), m->hidden);
    outs = larger(outs, m->labels);
    if (g->parts & PART_MLM || g->encoder->backend)
        outs = larger(outs, m->vocabulary);
    *ret_bias = outs;
    return outs * m->hidden;
}

int encoder_new(struct engine *g, struct error *e)
{
    uint64_t bias, weight = largest(g, &bias);
    struct build b = {.g = g, .c = g->encoder, .e = e};
    b.weight = memory_new(weight, sizeof(float));
    b.bias = memory_new(bias, sizeof(float));
    b.c->rows = rows_functions();
    b.c->slices = slices_of(g);
    b.c->own_gelu =
        !b.c->backend && g->dtype == ELEMENT_BF16 && activation_of(&g->config) == AFTER_GELU;
    b.c->layer = memory_new(g->config.layers, sizeof *b.c->layer);
    int r = build_embeddings(&b);
    for (uint32_t k = 0; k < g->config.layers && r == 0; k++)
        r = build_layer(&b, k);
    if (r == 0)
        r = build_heads(&b);
    free(b.weight);
    free(b.bias);
    return r;
}

static void layer_finish(struct layer *l)
{
    linear_finish(&l->projection);
    linear_finish(&l->output);
    for (uint32_t k = 0; k < FEED_SLICES; k++) {
        linear_finish(&l->inner[k]);
        linear_finish(&l->outer[k]);
    }
    norm_finish(&l->output_norm);
    norm_finish(&l->outer_norm);
}

/* What is packed for the CPU; a backend's numbers are its own. */
static void finish_packed(struct encoder *c, const struct model_config *config)
{
    for (uint32_t k = 0; c->layer && k < config->layers; k++)
        layer_finish(&c->layer[k]);
    linear_finish(&c->pooler);
    linear_finish(&c->words_dense);
    linear_finish(&c->words_out);
    linear_finish(&c->next);
    linear_finish(&c->classifier);
    linear_finish(&c->span);
    norm_finish(&c->words_norm);
    norm_finish(&c->embeddings_norm);
    free(c->positions);
    free(c->types);
}

void encoder_destroy(struct encoder *c, const struct model_config *config)
{
    if (!c)
        return;
    attention_finish(&c->attention);
    if (!c->backend)
        finish_packed(c, config);
    backend_close(c->backend);
    matmul_destroy(c->matmul);
    free(c->layer);
    free(c);
}
