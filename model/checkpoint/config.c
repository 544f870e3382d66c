/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of keys with their limits, then the settings of which only one value is supported. See config.h. */
#include "model/checkpoint/config.h"
#include "masks/base/memory.h"
#include "model/checkpoint/json.h"
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct model_config, field)

/* The limits keep every product of sizes within 64 bits. */
/* clang-format off */
static const struct {
    const char *key;
    size_t at;
    uint32_t least, most;
    bool required;
} sizes[] = {
    {"vocab_size",              AT(vocabulary),   1, 1 << 22, true},
    {"hidden_size",             AT(hidden),       1, 1 << 16, true},
    {"num_hidden_layers",       AT(layers),       1, 4096,    true},
    {"num_attention_heads",     AT(heads),        1, 4096,    true},
    {"intermediate_size",       AT(intermediate), 1, 1 << 18, true},
    {"max_position_embeddings", AT(positions),    1, 1 << 20, true},
    {"type_vocab_size",         AT(types),        1, 1 << 16, false},
    {"pad_token_id",            AT(pad),          0, 1 << 22, false},
    {"num_labels",              AT(labels),       1, 1 << 20, false},
};

static const struct {
    const char *key;
    size_t at;
    double least, most;
} reals[] = {
    {"layer_norm_eps",               AT(layer_norm_eps),     0, 1},
    {"initializer_range",            AT(initializer_range),  0, 1e6},
    {"hidden_dropout_prob",          AT(hidden_dropout),     0, 1},
    {"attention_probs_dropout_prob", AT(attention_dropout),  0, 1},
    {"classifier_dropout",           AT(classifier_dropout), 0, 1},
};

static const struct {
    const char *name;
    enum activation activation;
} activations[] = {
    {"gelu", ACTIVATION_GELU}, {"gelu_new", ACTIVATION_GELU_TANH}, {"gelu_pytorch_tanh", ACTIVATION_GELU_TANH},
    {"relu", ACTIVATION_RELU}, {"silu", ACTIVATION_SILU}, {"swish", ACTIVATION_SILU},
};

static const struct {
    const char *name;
    uint32_t parts;
} architectures[] = {
    {"BertModel",                     PART_ENCODER},
    {"BertForPreTraining",            PART_ENCODER | PART_POOLER | PART_MLM | PART_NSP},
    {"BertForMaskedLM",               PART_ENCODER | PART_MLM},
    {"BertForNextSentencePrediction", PART_ENCODER | PART_POOLER | PART_NSP},
    {"BertForSequenceClassification", PART_ENCODER | PART_POOLER | PART_CLASSIFIER},
    {"BertForMultipleChoice",         PART_ENCODER | PART_POOLER | PART_CLASSIFIER},
    {"BertForTokenClassification",    PART_ENCODER | PART_CLASSIFIER},
    {"BertForQuestionAnswering",      PART_ENCODER | PART_SPAN},
};

/* Switches that must be off. */
static const char *const off[] = {"is_decoder", "add_cross_attention", "is_encoder_decoder", "use_bfloat16"};
/* clang-format on */

#define COUNT(table) (sizeof(table) / sizeof *(table))

const char *activation_name(enum activation a)
{
    for (size_t k = 0; k < COUNT(activations); k++)
        if (activations[k].activation == a)
            return activations[k].name;
    return "?";
}

int activation_parse(const char *name, enum activation *ret, struct error *e)
{
    for (size_t k = 0; k < COUNT(activations); k++)
        if (!strcmp(activations[k].name, name)) {
            *ret = activations[k].activation;
            return 0;
        }
    return error_set(e, ERROR_INPUT,
                     "hidden_act '%.60s' is not supported: gelu, gelu_new, gelu_pytorch_tanh, "
                     "relu or silu is expected",
                     name);
}

static int take_sizes(const json_t *json, struct model_config *c, struct error *e)
{
    for (size_t k = 0; k < COUNT(sizes); k++) {
        uint32_t *to = (uint32_t *)((char *)c + sizes[k].at);
        const json_t *value = json_object_get(json, sizes[k].key);
        bool there = value && !json_is_null(value);
        if (!there && sizes[k].required)
            return error_set(e, ERROR_INPUT, "%s is missing", sizes[k].key);
        if (json_take_u32(json, sizes[k].key, to, e) < 0)
            return -1;
        if (there && (*to < sizes[k].least || *to > sizes[k].most))
            return error_set(e, ERROR_INPUT, "%s %u: %u..%u is expected", sizes[k].key, *to,
                             sizes[k].least, sizes[k].most);
    }
    return 0;
}

static int take_reals(const json_t *json, struct model_config *c, struct error *e)
{
    for (size_t k = 0; k < COUNT(reals); k++) {
        double *to = (double *)((char *)c + reals[k].at);
        const json_t *value = json_object_get(json, reals[k].key);
        if (json_take_real(json, reals[k].key, to, e) < 0)
            return -1;
        if (json_is_number(value) && !(*to >= reals[k].least && *to <= reals[k].most))
            return error_set(e, ERROR_INPUT, "%s %g: %g..%g is expected", reals[k].key, *to,
                             reals[k].least, reals[k].most);
    }
    return 0;
}

/* A text that, where it is there, must be `only`. */
static int take_only(const json_t *json, const char *key, const char *only, struct error *e)
{
    const char *text = NULL;
    if (json_take_text(json, key, &text, e) < 0)
        return -1;
    if (text && strcmp(text, only))
        return error_set(e, ERROR_INPUT, "%s '%.60s' is not supported, %s is expected", key,
                         text, only);
    return 0;
}

static int refuse_others(const json_t *json, struct error *e)
{
    if (take_only(json, "model_type", "bert", e) < 0 ||
        take_only(json, "position_embedding_type", "absolute", e) < 0)
        return -1;
    for (size_t k = 0; k < COUNT(off); k++) {
        bool on = false;
        if (json_take_bool(json, off[k], &on, e) < 0)
            return -1;
        if (on)
            return error_set(e, ERROR_INPUT, "%s true is not supported", off[k]);
    }
    if (json_object_size(json_object_get(json, "pruned_heads")))
        return error_set(e, ERROR_INPUT, "pruned_heads is not supported");
    if (json_object_size(json_object_get(json, "quantization_config")))
        return error_set(e, ERROR_INPUT, "quantization_config is not supported");
    return 0;
}

static int take_architecture(const json_t *json, struct model_config *c, struct error *e)
{
    const json_t *list = json_object_get(json, "architectures");
    const char *name = json_string_value(json_array_get(list, 0));
    c->architecture = name ? name : "";
    for (size_t k = 0; name && k < COUNT(architectures); k++)
        if (!strcmp(architectures[k].name, name))
            return 0;
    return !name ? 0
                 : error_set(e, ERROR_INPUT,
                             "architecture '%.60s' is not supported, a Bert one is expected",
                             name);
}

static int take_texts(const json_t *json, struct model_config *c, struct error *e)
{
    const json_t *mask = json_object_get(json, "maskc");
    const char *act = "gelu";
    c->dtype = c->problem = "";
    if (json_take_text(json, "hidden_act", &act, e) < 0 ||
        activation_parse(act, &c->activation, e) < 0 ||
        json_take_text(json, "torch_dtype", &c->dtype, e) < 0 ||
        json_take_text(json, "dtype", &c->dtype, e) < 0 ||
        json_take_text(json, "problem_type", &c->problem, e) < 0)
        return -1;
    if (mask && !json_is_object(mask) && !json_is_null(mask))
        return error_set(e, ERROR_INPUT, "maskc: an object is expected");
    if (json_take_text(mask, "mask", &c->mask, e) < 0 ||
        json_take_text(mask, "transform", &c->mask_transform, e) < 0)
        return error_prefix(e, "maskc");
    if (json_object_get(mask, "layers"))
        return error_set(e, ERROR_INPUT,
                         "maskc.layers: a mask of some layers is not supported");
    if (c->mask && (strchr(c->mask, '/') || !*c->mask || *c->mask == '.'))
        return error_set(e, ERROR_INPUT, "maskc.mask '%.60s': a file beside it is expected",
                         c->mask);
    return 0;
}

static int take_labels(const json_t *json, struct model_config *c, struct error *e)
{
    const json_t *labels = json_object_get(json, "id2label");
    size_t count = json_object_size(labels);
    c->labels_given = count || json_is_integer(json_object_get(json, "num_labels"));
    if (count > 1 << 20)
        return error_set(e, ERROR_INPUT, "id2label: %zu labels are too many", count);
    if (count)
        c->labels = (uint32_t)count;
    if (!strcmp(c->architecture, "BertForMultipleChoice")) {
        c->labels = 1;
        c->labels_given = true;
    }
    return 0;
}

static int check(const struct model_config *c, struct error *e)
{
    if (c->hidden % c->heads)
        return error_set(e, ERROR_INPUT,
                         "hidden_size %u is no multiple of num_attention_heads %u", c->hidden,
                         c->heads);
    if (c->pad >= c->vocabulary)
        return error_set(e, ERROR_INPUT, "pad_token_id %u is not below vocab_size %u", c->pad,
                         c->vocabulary);
    return 0;
}

int config_parse(json_t *json, struct model_config *ret, struct error *e)
{
    struct model_config c = {.types = 2,
                             .labels = 2,
                             .layer_norm_eps = 1e-12,
                             .initializer_range = 0.02,
                             .hidden_dropout = 0.1,
                             .attention_dropout = 0.1,
                             .classifier_dropout = -1,
                             .tied = true};
    if (refuse_others(json, e) < 0 || take_sizes(json, &c, e) < 0 ||
        take_reals(json, &c, e) < 0 || take_architecture(json, &c, e) < 0 ||
        take_texts(json, &c, e) < 0 || take_labels(json, &c, e) < 0 ||
        json_take_bool(json, "tie_word_embeddings", &c.tied, e) < 0 || check(&c, e) < 0)
        return -1;
    *ret = c;
    ret->json = json_incref(json);
    return 0;
}

int config_read(const char *folder, struct model_config *ret, struct error *e)
{
    json_t *json = json_read(folder, "config.json", e);
    if (!json)
        return -1;
    int r = config_parse(json, ret, e);
    json_decref(json);
    return r < 0 ? error_prefix(e, "%s/config.json", folder) : 0;
}

void config_finish(struct model_config *c)
{
    json_decref(c->json);
    *c = (struct model_config){0};
}

uint32_t config_parts(const struct model_config *c)
{
    for (size_t k = 0; k < COUNT(architectures); k++)
        if (!strcmp(architectures[k].name, c->architecture))
            return architectures[k].parts;
    return PART_ENCODER;
}

const char *config_label(const struct model_config *c, uint32_t label, char buffer[24])
{
    snprintf(buffer, 24, "%u", label);
    const json_t *labels = json_object_get(c->json, "id2label");
    const char *text = json_string_value(json_object_get(labels, buffer));
    snprintf(buffer, 24, "LABEL_%u", label);
    return text ? text : buffer;
}

char *config_write(const struct model_config *c, const char *dtype)
{
    json_t *json = json_deep_copy(c->json);
    for (size_t k = 0; k < COUNT(sizes); k++) {
        uint32_t now = *(const uint32_t *)((const char *)c + sizes[k].at);
        const json_t *was = json_object_get(json, sizes[k].key);
        if (was && json_integer_value(was) != now)
            json_object_set_new(json, sizes[k].key, json_integer(now));
    }
    json_object_set_new(json, "torch_dtype", json_string(dtype));
    json_object_del(json, "dtype");
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(15));
    json_decref(json);
    return text;
}
