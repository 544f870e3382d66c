/* SPDX-License-Identifier: Apache-2.0 */
/* From the tensors of the files to the weights that the backend holds. Query, key and value become one
   matrix. Heads that the attention kernels do not take are padded with zeros: rows of query, key and value,
   columns of the output. */
#include "masks/base/memory.h"
#include "model/encoder.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the functions below share. */
struct build {
    struct engine *g;
    struct encoder *c;
    struct error *e;
    float *weight, *bias; /* scratch, as large as the largest matrix and bias */
};

static const struct tensor *tensor_of(const struct build *b, const char *name)
{
    return weights_find(&b->g->weights, name);
}

/* Reads all of a tensor as f32. */
static void read_all(const struct build *b, const char *name, float *ret)
{
    const struct tensor *t = tensor_of(b, name);
    tensor_to_f32(t, 0, t->parameter.count, ret);
}

/* Hands all of a tensor to the backend, as elements of a type. */
static void *keep(const struct build *b, const char *name, enum element type)
{
    const uint64_t count = tensor_of(b, name)->parameter.count;
    read_all(b, name, b->weight);
    return b->c->backend->keep(b->c->state, type, b->weight, count, b->e);
}

static int read_norm(const struct build *b, const char *prefix, struct norm *ret)
{
    char name[PARAMETER_NAME_BYTES];
    *ret =
        (struct norm){.size = b->g->config.hidden, .eps = (float)b->g->config.layer_norm_eps};
    snprintf(name, sizeof name, "%s.weight", prefix);
    ret->gain = keep(b, name, ELEMENT_F32);
    snprintf(name, sizeof name, "%s.bias", prefix);
    ret->shift = ret->gain ? keep(b, name, ELEMENT_F32) : NULL;
    return ret->shift ? 0 : -1;
}

/* ---- linear layers ---- */

static int pack(const struct build *b, uint32_t in, uint32_t out, enum element y,
                enum after after, struct linear *ret)
{
    const struct linear_shape shape = {in, out, b->g->dtype, y, after};
    return b->c->backend->pack(b->c->state, &shape, b->weight, b->bias, ret, b->e);
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

/* Row 0 of head h goes to row h * padded of its third of the matrix. */
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

/* Column 0 of head h goes to column h * padded. */
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

static int pack_inner(const struct build *b, uint32_t layer, struct layer *l)
{
    const struct model_config *m = &b->g->config;
    const struct feed_form *f = &b->c->feed;
    const uint32_t width = m->intermediate / f->slices;
    struct build slice = *b;
    char name[PARAMETER_NAME_BYTES];
    snprintf(name, sizeof name, "encoder.layer.%u.intermediate.dense.weight", layer);
    read_all(b, name, b->weight);
    snprintf(name, sizeof name, "encoder.layer.%u.intermediate.dense.bias", layer);
    read_all(b, name, b->bias);
    for (uint32_t k = 0; k < f->slices; k++) {
        slice.weight = b->weight + (size_t)k * width * m->hidden;
        slice.bias = b->bias + k * width;
        if (pack(&slice, m->hidden, width, f->own_gelu ? ELEMENT_F32 : b->g->dtype,
                 f->own_gelu ? AFTER_NONE : linear_after(m->activation), &l->inner[k]) < 0)
            return -1;
    }
    return 0;
}

/* The first slice has the bias. */
static int pack_outer(const struct build *b, uint32_t layer, struct layer *l)
{
    const struct model_config *m = &b->g->config;
    const uint32_t slices = b->c->feed.slices, width = m->intermediate / slices;
    char name[PARAMETER_NAME_BYTES];
    snprintf(name, sizeof name, "encoder.layer.%u.output.dense.bias", layer);
    read_all(b, name, b->bias);
    snprintf(name, sizeof name, "encoder.layer.%u.output.dense.weight", layer);
    const struct tensor *t = tensor_of(b, name);
    for (uint32_t k = 0; k < slices; k++) {
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
        pack_inner(b, k, l) < 0 || pack_outer(b, k, l) < 0)
        return -1;
    snprintf(name, sizeof name, "encoder.layer.%u.attention.output.LayerNorm", k);
    if (read_norm(b, name, &l->output_norm) < 0)
        return -1;
    snprintf(name, sizeof name, "encoder.layer.%u.output.LayerNorm", k);
    return read_norm(b, name, &l->outer_norm);
}

/* ---- heads ---- */

/* The decoder shares the word embeddings unless it has weights of its own. */
static int pack_words(const struct build *b)
{
    const struct model_config *m = &b->g->config;
    const struct tensor *t = tensor_of(b, "cls.predictions.decoder.weight");
    const char *transform = "cls.predictions.transform.dense";
    if (pack_plain(b, transform, ELEMENT_F32, linear_after(m->activation), &b->c->words_dense) <
            0 ||
        read_norm(b, "cls.predictions.transform.LayerNorm", &b->c->words_norm) < 0)
        return -1;
    tensor_to_f32(t ? t : b->c->embeddings.mapped_words, 0, (uint64_t)m->vocabulary * m->hidden,
                  b->weight);
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

static int build_embeddings(const struct build *b)
{
    static const char words[] = "embeddings.word_embeddings.weight";
    struct embeddings *m = &b->c->embeddings;
    m->mapped_words = tensor_of(b, words);
    if (b->c->backend->keeps_words && !(m->words = keep(b, words, b->g->dtype)))
        return -1;
    m->positions = keep(b, "embeddings.position_embeddings.weight", ELEMENT_F32);
    m->types =
        m->positions ? keep(b, "embeddings.token_type_embeddings.weight", ELEMENT_F32) : NULL;
    return m->types ? read_norm(b, "embeddings.LayerNorm", &m->norm) : -1;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Elements of the largest tensor, and of the longest bias. */
static uint64_t largest(const struct engine *g, uint64_t *ret_bias)
{
    const struct model_config *m = &g->config;
    uint64_t outs =
        larger(larger((uint64_t)3 * attention_columns(m), m->intermediate), m->hidden);
    outs = larger(larger(outs, m->labels), larger(m->positions, m->types));
    if (g->parts & PART_MLM || g->encoder->backend->keeps_words)
        outs = larger(outs, m->vocabulary);
    *ret_bias = outs;
    return outs * m->hidden;
}

int encoder_pack(struct engine *g, struct error *e)
{
    struct encoder *c = g->encoder;
    uint64_t bias, weight = largest(g, &bias);
    struct build b = {.g = g, .c = c, .e = e};
    b.weight = memory_new(weight, sizeof(float));
    b.bias = memory_new(bias, sizeof(float));
    c->feed = c->backend->feed_form(&g->config, g->dtype);
    c->layer = memory_new(g->config.layers, sizeof *c->layer);
    int r = build_embeddings(&b);
    for (uint32_t k = 0; k < g->config.layers && r == 0; k++)
        r = build_layer(&b, k);
    if (r == 0)
        r = build_heads(&b);
    free(b.weight);
    free(b.bias);
    return r;
}

void encoder_destroy(struct encoder *c)
{
    if (!c)
        return;
    attention_finish(&c->attention);
    if (c->backend)
        c->backend->close(c->state);
    free(c->layer);
    free(c);
}
